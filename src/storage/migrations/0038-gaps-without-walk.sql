-- Whether a gap still waits for a walk: comparisons ask for each page, and filled gaps stay as rows.
create index concurrently if not exists tracker_gap_unreopened on tracker_gap (network_id) where reopen_time is null;
