-- works-from: 0019
-- What is in the S3-compatible store of large artifacts: the row is there before the object is, and until after it is gone.
create table stored_object (
  key text primary key,
  bucket text not null,
  bytes integer not null,
  -- When it was made, or referred to last: what nobody refers to has a while until it is removed.
  used_at timestamptz not null default now(),
  -- From here on nothing may refer to it any more.
  removing_since timestamptz
);
create index stored_object_age on stored_object (used_at);

-- A chunk is in its row or in an object. Programs of the version before go on with those in rows.
alter table checkpoint_piece
  alter column sealed drop not null,
  add column object_key text references stored_object,
  add check ((sealed is null) <> (object_key is null));
create index checkpoint_piece_object on checkpoint_piece (object_key) where object_key is not null;
