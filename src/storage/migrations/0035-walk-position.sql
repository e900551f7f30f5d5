-- The walk of balances that are to be read again goes along the key of wallet_address: address, organization. Its position was
-- (wallet_id, address, asset_id) before; wallet_id stays null now, so that a position of the earlier walk is recognized.
alter table balance_reopening add column address_organization_id uuid;
