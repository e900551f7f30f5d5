-- What a credential may do beyond its role: until when, what for, and from where.
alter table credential drop constraint credential_role_check;
alter table credential add constraint credential_role_check
  check (role in ('ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER'));
alter table credential
  add column expire_time timestamptz,
  -- Null where nothing is restricted: most credentials, and the cheapest to check.
  add column scopes text[],
  add column allowed_client_networks text[],
  -- The credential that a rotation has put in the place of this one.
  add column successor_credential_id uuid,
  -- Raised by every change of what the credential may do: a process that knows an older revision by
  -- heart is told so by the statement that spends the nonce. Null is the first one.
  add column revision int4,
  -- Whether the key carries a MAC, so that a guess is refused without a look-up; null for keys of before.
  add column has_mac boolean,
  add column last_used_address text;
-- "Is there any key without a MAC?" is asked again and again; the answer is found in one page.
create index credential_without_mac on credential ((true)) where has_mac is not true;

-- Keys of the installation, each sealed under the master key: a rotation of the master key seals them
-- again and does not change what was made with them.
create table installation_key (
  name text primary key,
  key_sealed bytea not null,
  create_time timestamptz not null
);
