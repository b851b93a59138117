-- needs: is_listened_to
-- Puts an event of Offstage itself into the ledger, if a trigger listens to it; a worker decides it like one of a forge. In the
-- transaction of the change itself. A run that such an event started tells of its own end too: a chain of five is the longest, each
-- trigger fires once in what came of one first event, and what a session did never starts its own automation again. So automations
-- that start each other come to an end.
-- Measured: 257 µs, 26 pages: one of a hundred triggers lists the event.
-- Callers: move_session, tell_triggers_of_pull_request.
-- @param told what `event` has beside the session, as JSON
create or replace function tell_triggers(happened text, by_session session, told jsonb) returns void language plpgsql as $$
declare
  links integer;
  root uuid;
begin
  -- A conflict is the feedback loop's to resolve, whoever listens.
  if happened <> 'pullRequest.conflicted' and not is_listened_to(by_session.organization_id, happened, null) then
    return;
  end if;
  select arrival.depth, coalesce(arrival.root_id, arrival.id) into links, root from job join arrival on arrival.id = job.event_id
    where job.id = by_session.job_id;
  insert into arrival (id, organization_id, name, subject, depth, root_id, lease_until, steers_from, payload)
    values (gen_random_uuid(), by_session.organization_id, happened, 'session:' || by_session.id, coalesce(links, 0) + 1, root,
      -- As receive_event has it: workers of the version before leave it alone.
      case when happened = 'pullRequest.conflicted' then timestamptz 'infinity' end,
      case when happened = 'pullRequest.conflicted' then now() end,
      jsonb_build_object('name', happened, 'session', jsonb_build_object(
        'id', by_session.id, 'title', by_session.title, 'status', by_session.status, 'failure', by_session.failure - 'mend',
        'automationId', by_session.automation_id, 'waiting', by_session.waiting),
        'repository', (select jsonb_build_object('url', repository.url, 'fullName', repository.name)
          from session_repository part join repository on repository.id = part.repository_id
          where part.session_id = by_session.id order by part.position limit 1)) || told);
end $$;
