import { describeBadRequests } from './refuses-bad-requests.ts'

await describeBadRequests(['t', 's', 'p'])
