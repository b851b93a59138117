-- needs:
-- Sessions, except those that run, for which any of the questions is true: at most `most` of them, in no order. It always uses the
-- index session_lexemes_index, whatever the statistics say, and no parallel workers, whose start takes longer than most questions:
-- among 10 million sessions a search takes 3 to 15 ms.
-- Measured: 43 µs, 5 pages: a word of one in a hundred sessions, in four days of them.
-- Callers: src/store/sessions/search.ts. The function session_lexemes is no definition of this folder: an index is made with it,
-- so that a change of it needs a migration that makes the index again (0040_organization_data.sql).
-- @param most null: all of them
create or replace function sessions_with_words(questions tsquery[], most integer)
returns table (id uuid, organization_id uuid, status text, automation_id uuid, created_at timestamptz)
language plpgsql stable
  set enable_seqscan to off set max_parallel_workers_per_gather to 0 set work_mem to '32MB'
  set plan_cache_mode to force_generic_plan as $$
begin
  return query select session.id, session.organization_id, session.status, session.automation_id, session.created_at
    from session
    where session_lexemes(session.organization_id, session.created_at, session.title, session.description) @@ any(questions)
      and session.status <> 'running'
    limit most;
end $$;
