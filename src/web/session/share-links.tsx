import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import type { Share } from "../../domain/sessions/share.ts";
import { CloseDialog, ConfirmButton, Modal } from "../elements/dialog.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secret-once.tsx";
import { Ago, Day, useNow } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";

const choiceOfDays = [1, 7, 30, 365] as const;
const daysAtFirst = 7;

/** The links that show a session to whoever has them: made, listed, revoked. */
export function ShareLinks({ sessionId, onClosed }: { sessionId: string; onClosed: () => void }) {
  const texts = useSessionTexts().share;
  const [url, setUrl] = useState<string | null>(null);
  return (
    <Modal
      title={texts.title}
      className="w-[min(36rem,94vw)] space-y-4"
      closesOutside={url === null}
      onClosed={onClosed}
    >
      <p className="text-sm text-muted">{texts.about}</p>
      {url === null ? (
        <NewLink sessionId={sessionId} onMade={setUrl} />
      ) : (
        <SecretOnce label={texts.link} about={texts.once} secret={url} onDone={() => setUrl(null)} />
      )}
      <PagedList
        label={texts.title}
        queryKey={["shares", sessionId]}
        readPage={(cursor) => client.session.shares(sessionId, { limit: 20, cursor })}
        itemsOf={(page) => page.shares}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(share) => <Row key={share.id} share={share} />}
      </PagedList>
      <div className="flex justify-end">
        <CloseDialog />
      </div>
    </Modal>
  );
}

function NewLink({ sessionId, onMade }: { sessionId: string; onMade: (url: string) => void }) {
  const texts = useSessionTexts().share;
  const id = useId();
  const queries = useQueryClient();
  const [days, setDays] = useState<number>(daysAtFirst);
  const make = useMutation({
    mutationFn: () => client.session.share(sessionId, { expiresInDays: days }),
    onSuccess: (made) => {
      onMade(made.url);
      return queries.invalidateQueries({ queryKey: ["shares", sessionId] });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <form className="flex flex-wrap items-end gap-2" onSubmit={submit}>
      <label htmlFor={id} className="text-sm font-medium">
        {texts.shownFor}
        <select
          id={id}
          className="field mt-1 block"
          value={days}
          onChange={({ target }) => setDays(Number(target.value))}
        >
          {choiceOfDays.map((choice) => (
            <option key={choice} value={choice}>
              {texts.days(choice)}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" className="button button-primary" disabled={make.isPending}>
        {texts.make}
      </button>
      <ErrorText error={make.error} />
    </form>
  );
}

function Row({ share: { id, sessionId, createdAt, createdBy, expiresAt, revokedAt, lastUsedAt } }: { share: Share }) {
  const texts = useSessionTexts().share;
  const queries = useQueryClient();
  const isExpired = Date.parse(expiresAt) <= useNow(30_000);
  const revoke = useMutation({
    mutationFn: () => client.session.revokeShare(sessionId, id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["shares", sessionId] }),
  });
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p>
          {texts.made} <Ago at={createdAt} />
          {createdBy !== null && (
            <>
              {" "}
              {texts.by} <bdi>{createdBy.name}</bdi>
            </>
          )}
        </p>
        <p className="text-muted">
          {revokedAt !== null ? (
            texts.revoked
          ) : (
            <>
              {isExpired ? texts.expired : texts.ends} <Day at={expiresAt} />
            </>
          )}
          {" · "}
          {lastUsedAt === null ? (
            texts.unused
          ) : (
            <>
              {texts.used} <Ago at={lastUsedAt} />
            </>
          )}
        </p>
        <ErrorText error={revoke.error} />
      </div>
      {revokedAt === null && !isExpired && (
        <ConfirmButton
          button={texts.revoke}
          disabled={revoke.isPending}
          question={texts.revokeQuestion}
          onConfirm={() => revoke.mutate()}
        >
          {texts.revokeText}
        </ConfirmButton>
      )}
    </li>
  );
}
