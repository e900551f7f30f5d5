-- How addresses of the network are printed beyond the rules of its family (P: the SS58 prefix, T: whether it is the
-- production network), as the chain said last. Rows of a chain that is removed, or whose nodes are unreachable, read the
-- same. Null where it is not known or nothing differs.
alter table network add column address_rules jsonb;
