-- The number of confirmations that a change of the webhook is moving its notifications to, page by page. Null when none is under
-- way. Calls at once share it, so that all notifications end with one number.
alter table webhook add column next_confirmation int8;
