-- needs: enqueue_session_webhooks, note_run_end, tell_triggers
-- The only place that changes a session's status, claims included. It checks that the move is allowed, sets everything that
-- belongs to the move (who holds the session, its fence, what it waits for, what failed before, its times), and writes
-- the event and the webhook deliveries that report it, in one transaction. src/domain/sessions/status.ts has the picture of
-- the moves.
--
-- Without a claimer, the caller has locked the row. With one, the row is locked by its update: if the session can no longer
-- be claimed, because somebody was first, the answer is null.
--
-- A claim has statements of its own: each session waits for them, they set nothing that depends on where else it could have moved,
-- and no pull request or thread waits for it. With those of all moves a claim took 7 % more of the database's processor time.
-- Whether a webhook listens is read with the status: as a statement of its own it took longer than both together.
--
-- The parameters are typed and not one JSON object, which made a claim some 3 % slower. The version before calls the function of
-- the same name without `waits_for` (move_session.without_waits_for.sql): name `waits_for` in each call.
-- Measured: 274 µs, 50 pages: a session that ran is completed, nobody has a webhook.
-- Callers: claim_session, move_session.without_waits_for, src/store/sessions/transition.ts.
-- @param reason a sentence for readers
-- @param new_failure null: the session has none
-- @param new_summary null: the session keeps its own
-- @param keeps_place the attempt was interrupted, and the session keeps its place in the queue
-- @param waits_for what the session waits for. If it becomes waiting: what its page shows. If a running one becomes queued: the
--   retry, as `PlannedRetry` in src/domain/sessions/retry.ts; it may be claimed after its `delayMs`. Null: at once
-- @param claimer, lease, reserved for a claim, which moves to `running` and has none of what is above: the worker, for how long, and
--   what is held back of the month's budget
-- @throws OS001 if the session's status does not allow the move
create or replace function move_session(
  moved uuid, to_status text, reason text, new_failure jsonb, new_summary text, keeps_place boolean, waits_for jsonb,
  claimer text default null, lease interval default null, reserved numeric default 0
) returns session language plpgsql as $$
declare
  from_status text;
  is_allowed boolean;
  -- Whether there is a webhook, or somebody who wants notices, that may have to get this move.
  has_listener boolean;
  retried jsonb;
  retried_at timestamptz;
  changed session;
begin
  if claimer is not null then
    select status, exists (select from webhook where organization_id = session.organization_id and enabled)
      into from_status, has_listener from session where id = moved;
    update session set status = 'running',
      -- The fence: whoever had the session before can write nothing more.
      attempt = attempt + 1,
      started_at = coalesce(started_at, now()),
      queue_wait_ms = case when started_at is null then extract(epoch from now() - queued_at) * 1000 else queue_wait_ms end,
      finished_at = null, failure = null, cancel_requested = false, reserved_usd = reserved,
      waiting = null, ready = false, retry_at = null, interrupted_at = null,
      worker = claimer, lease_until = now() + lease, last_event = last_event + 1, updated_at = now()
    -- What may be claimed, as `claimable` has it: only a session that waits is ever ready. A call of it took 2 % of a claim here.
    where id = moved and status = from_status and ((from_status = 'queued' and retry_at is null) or ready)
    returning * into changed;
    if not found then return null; end if;
    insert into event (session_id, seq, type, data) values (moved, changed.last_event, 'session.status',
      jsonb_build_object('from', from_status, 'to', 'running'));
    if has_listener then perform enqueue_session_webhooks(changed); end if;
    if changed.job_id is not null then
      -- A worker says it where the run's event came from: src/store/answers/session-replies.ts.
      update session_reply set due_at = now() where session_id = moved;
    end if;
    return changed;
  end if;

  select status, status || ' > ' || to_status = any(array[
      'draft > queued', 'draft > cancelled', 'queued > cancelled',
      'running > completed', 'running > failed', 'running > cancelled', 'running > waiting', 'running > queued',
      'waiting > running', 'waiting > cancelled',
      'completed > queued', 'failed > queued', 'cancelled > queued']),
      exists (select from webhook where organization_id = session.organization_id and enabled)
    into from_status, is_allowed, has_listener from session where id = moved;
  if is_allowed is not true then
    raise exception 'session % is % and can''t become %', moved, from_status, to_status using errcode = 'OS001';
  end if;
  retried := case when to_status = 'queued' then waits_for - 'delayMs' end;
  retried_at := case when (waits_for ->> 'delayMs')::float8 > 0 and retried is not null
    then now() + (waits_for ->> 'delayMs')::float8 * interval '1 millisecond' end;
  update session set status = to_status,
    -- What is given work is in the usual list again.
    archived_at = case when to_status <> 'queued' then archived_at end,
    -- The fence: the worker that had the session can write nothing more once it waits.
    attempt = attempt + (to_status = 'waiting')::integer,
    queued_at = case when to_status = 'queued' and not keeps_place then now() else queued_at end,
    started_at = case when to_status = 'running' then coalesce(started_at, now()) else started_at end,
    finished_at = case when to_status in ('completed', 'failed', 'cancelled') then now() end,
    -- `mend` is for nodes of the version before, which show no failure without it: with_remedy.sql.
    failure = new_failure || jsonb_build_object('mend', new_failure -> 'remedy'), summary = coalesce(new_summary, summary),
    cancel_requested = cancel_requested and to_status = 'running',
    reserved_usd = case when to_status = 'running' then reserved_usd else 0 end,
    waiting = case when to_status = 'waiting' then waits_for end, ready = false,
    retry_at = retried_at,
    -- It did nothing wrong itself: it goes on before others begin. Its place was free only because of what happened to its worker.
    interrupted_at = case when to_status = 'queued' and from_status = 'running' and keeps_place
      and coalesce(retried ->> 'code', 'worker_lost') = 'worker_lost' then now() end,
    -- It is kept while attempts are interrupted, so that failures of one reason are counted over them.
    retry = case when to_status = 'running' or (to_status = 'queued' and from_status = 'running') then coalesce(retried, retry) end,
    worker = case when to_status = 'running' then worker end,
    lease_until = case when to_status = 'running' then lease_until end,
    last_event = last_event + 1, updated_at = now()
  where id = moved and status = from_status
  returning * into changed;
  if not found then return null; end if;
  insert into event (session_id, seq, type, data) values (moved, changed.last_event, 'session.status',
    jsonb_build_object('from', from_status, 'to', to_status)
      || case when reason is null then '{}' else jsonb_build_object('reason', reason) end
      || case when new_failure is null then '{}' else jsonb_build_object('failure', new_failure) end
      || case when retried_at is null then '{}' else jsonb_build_object('retry', jsonb_build_object(
        'at', to_char(retried_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'reason', retried -> 'reason', 'code', retried -> 'code', 'attempt', retried -> 'attempt')) end);
  if not has_listener and to_status in ('completed', 'failed', 'waiting') then
    has_listener := exists (select from notice_preference where organization_id = changed.organization_id);
  end if;
  if has_listener then
    perform enqueue_session_webhooks(changed);
  end if;
  if to_status in ('completed', 'failed', 'waiting') then
    perform tell_triggers('session.' || to_status, changed, '{}');
  end if;
  if from_status = 'running' or changed.finished_at is not null then
    -- A turn may have ended that a thread waits for: src/store/conversations/conversations.ts.
    update conversation_run set due_at = now() where session_id = moved;
    if changed.job_id is not null then
      update conversation_run set due_at = now() where id = changed.job_id;
    end if;
  end if;
  -- What the text of its pull requests says: src/store/repositories/pull-request-sections.ts.
  update pull_request set section_due_at = now() where session_id = moved and state = 'open';
  if changed.job_id is not null then
    -- A worker says it where the run's event came from: src/store/answers/session-replies.ts.
    update session_reply set due_at = now() where session_id = moved;
    if to_status in ('completed', 'failed', 'cancelled') then
      perform note_run_end(changed);
    end if;
  end if;
  return changed;
end $$;
