-- Documents that name many addresses name whose they are once, with all addresses of one length as one
-- text, and the blocks beside them as another one, twelve digits each: with a text and numbers for each
-- of them the server spent as much on reading a document as on storing it.
update balance_backlog b set work = jsonb_build_object('owners', (
  select jsonb_agg(l.owner || jsonb_build_object('length', l.length, 'addresses', l.addresses,
    'blocks', l.blocks))
  from (
    select o.owner, length(p.address) / 2 as length, string_agg(p.address, '' order by p.at) as addresses,
      string_agg(lpad(to_hex(p.block::int8), 12, '0'), '' order by p.at) as blocks
    from rows from (
      jsonb_array_elements_text(b.work->'owner'), jsonb_array_elements_text(b.work->'addresses'),
      jsonb_array_elements_text(b.work->'blocks')) with ordinality p (owner, address, block, at)
    join jsonb_array_elements(b.work->'owners') with ordinality o (owner, place)
      on o.place = p.owner::int8
    group by o.owner, length(p.address)) l));

update balance_reading b set pairs = jsonb_build_object('owners', (
  select jsonb_agg(to_jsonb(l))
  from (
    select p.wallet_id, p.asset_id, length(p.address) / 2 as length, string_agg(p.address, '') as addresses
    from rows from (
      jsonb_array_elements_text(b.pairs->'wallet_ids'), jsonb_array_elements_text(b.pairs->'addresses'),
      jsonb_array_elements_text(b.pairs->'asset_ids')) p (wallet_id, address, asset_id)
    group by p.wallet_id, p.asset_id, length(p.address)) l));
