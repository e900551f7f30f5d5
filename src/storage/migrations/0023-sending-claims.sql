-- Which process checks the transactions of an address on a network. Several senders share the addresses that have something
-- due; an address is never with two of them. A claim is renewed while its process works, and deleted after that.
create table sending_claim (
  network_id int2 not null references network,
  "from" bytea not null,
  holder uuid not null,
  expire_time timestamptz not null,
  primary key (network_id, "from")
);
