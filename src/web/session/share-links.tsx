import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import { CloseDialog, Modal } from "../elements/dialog.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { ShareRow } from "../elements/sessions/share-row.tsx";
import { client } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";

const choiceOfDays = [1, 7, 30, 365] as const;
const daysAtFirst = 7;

/** Makes, lists and revokes the share links of a session. */
export function ShareLinks({ sessionId, onClosed }: { sessionId: string; onClosed: () => void }) {
  const texts = useSessionTexts().share;
  const queries = useQueryClient();
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
        {(share) => (
          <ShareRow
            key={share.id}
            share={share}
            revoke={async () => {
              await client.session.revokeShare(sessionId, share.id);
              await queries.invalidateQueries({ queryKey: ["shares"] });
            }}
          />
        )}
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
    // Don't keep the link in the cache.
    gcTime: 0,
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
