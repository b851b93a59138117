-- works-from: 0020
-- What a search asks (src/store/search-index.ts names the same): each word of a session under the four days in which the
-- session was made, of its organization alone. So a search goes back from the newest, and reads no more than its page needs,
-- however many sessions there are. Programs of the version before look for words without an index from here on.
drop index session_search;
create function session_words(organization_id uuid, created_at timestamptz, title text, description text)
returns tsvector language plpgsql immutable parallel safe as $$
declare
  content text := title || ' ' || left(description, 20000);
  words text[] := tsvector_to_array(to_tsvector('simple', content));
  -- Four letters of the organization: two that have the same are told apart by the row. Then the days, counted from 1970.
  place text := encode(substring(uuid_send(organization_id) from 14), 'base64')
    || to_hex(floor(extract(epoch from created_at) / 345600)::integer) || '/';
begin
  -- A lexeme has at most 2,046 bytes, a search 500 characters.
  if octet_length(content) > 2000 then
    words := array(select left(word, 500) from unnest(words) word);
  end if;
  -- Joined and split by what is in no word, which takes half the time of unnesting.
  return array_to_tsvector(string_to_array(place || array_to_string(words, E'\x01' || place), E'\x01'));
end $$;

-- The index on them was made here, in minutes in which nobody could write; 0041 makes its successor, and writes go on.

-- Sessions, but for those that run, that any of the questions is true of, `most` of them, in no order. By that index, whatever
-- the statistics say, and without parallel workers, whose start takes longer than most questions do.
create function sessions_with_words(questions tsquery[], most integer)
returns table (id uuid, organization_id uuid, status text, automation_id uuid, created_at timestamptz)
language plpgsql stable
  set enable_seqscan to off set max_parallel_workers_per_gather to 0 set work_mem to '32MB' set plan_cache_mode to force_generic_plan as $$
begin
  return query select session.id, session.organization_id, session.status, session.automation_id, session.created_at
    from session
    where session_words(session.organization_id, session.created_at, session.title, session.description) @@ any(questions)
      and session.status <> 'running'
    limit most;
end $$;
