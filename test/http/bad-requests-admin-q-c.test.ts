import { describeBadRequests } from './refuses-bad-requests.ts'

await describeBadRequests(['admin', 'q', 'c'])
