-- The wallet of an address has the same network, whose key is checked there; networks are never deleted. To check it once more for
-- each address was a quarter of what a registration in bulk cost the database.
alter table wallet_address drop constraint wallet_address_network_id_fkey;
