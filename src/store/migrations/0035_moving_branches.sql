-- works-from: 0027
-- A message may ask that its turn begins with the target branch merged into the work branch; a pull request has what its forge
-- says of whether it can be merged. Nodes of the version before write neither: such a message's turn begins as any other there.
alter table message add column merges_target boolean not null default false;
alter table pull_request add column mergeable boolean,
  -- How often in a row the forge did not know yet, or said no for the first time: it is asked again soon, a few times.
  add column mergeable_asked smallint not null default 0;
