import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Subscription } from "../../domain/notices/notice.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useNoticeTexts } from "../texts/notices.ts";
import { browserName } from "./browser-name.ts";
import {
  NotAllowedError,
  readPushHere,
  rememberSubscription,
  subscribeHere,
  subscriptionIdHere,
  unsubscribeHere,
  type PushHere,
} from "../push.ts";

/** More than a person can have. */
const limit = 50;

/** The browsers to which the user's notices are pushed: adds and removes this one, removes any other. */
export function NoticeBrowsers({ publicKey }: { publicKey: string }) {
  const texts = useNoticeTexts();
  const { tryAgain } = useElementTexts();
  const list = useQuery({
    queryKey: ["subscriptions"],
    queryFn: async () => (await client.notices.subscriptions({ limit })).subscriptions,
  });
  // Read again whenever the user comes back, from the browser's own settings too.
  const here = useQuery({ queryKey: ["push-here"], queryFn: readPushHere });
  const browsers = list.data;
  const ownId = here.data?.isSubscribed === true ? subscriptionIdHere() : null;
  return (
    <div className="space-y-3 border-t border-line pt-4">
      <h3 className="label">{texts.browsers}</h3>
      <ErrorText error={list.error} />
      {list.isPending && <Loading />}
      {list.isLoadingError && (
        <button type="button" className="button" onClick={() => void list.refetch()}>
          {tryAgain}
        </button>
      )}
      {browsers?.length === 0 && <p className="text-sm text-muted">{texts.noBrowsers}</p>}
      {browsers !== undefined && browsers.length > 0 && (
        <ul aria-label={texts.browsers} className="divide-y divide-line">
          {browsers.map((browser) => (
            <Row key={browser.id} browser={browser} isHere={browser.id === ownId} />
          ))}
        </ul>
      )}
      {browsers !== undefined && here.data !== undefined && (
        <Here here={here.data} own={browsers.find(({ id }) => id === ownId)} publicKey={publicKey} />
      )}
    </div>
  );
}

/** @returns a function that reads the browsers again, and this one's state */
function useReload(): () => Promise<unknown> {
  const queries = useQueryClient();
  return () =>
    Promise.all([["subscriptions"], ["push-here"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
}

function Row({ browser, isHere }: { browser: Subscription; isHere: boolean }) {
  const texts = useNoticeTexts();
  const reload = useReload();
  const remove = useMutation({
    mutationFn: () => client.notices.unsubscribe(browser.id),
    onSettled: reload,
  });
  const name = browserName(browser.userAgent) ?? texts.unknownBrowser;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2 text-sm">
      <div className="min-w-0 flex-1 basis-56">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium">{name}</span>
          {isHere && <span className="text-muted">{texts.here}</span>}
        </p>
        <p className="wrap-anywhere text-muted">
          {browser.host} · {texts.since} <Ago at={browser.createdAt} />
          {browser.sentAt !== null && (
            <>
              {" "}
              · {texts.last} <Ago at={browser.sentAt} />
            </>
          )}
        </p>
      </div>
      {!isHere && (
        <ConfirmButton
          button={texts.remove}
          of={name}
          disabled={remove.isPending}
          question={texts.removeOf(name)}
          onConfirm={() => remove.mutate()}
        >
          {texts.removeAbout}
        </ConfirmButton>
      )}
      <ErrorText error={remove.error} />
    </li>
  );
}

async function endHere(id: string): Promise<void> {
  await client.notices.unsubscribe(id);
  await unsubscribeHere();
}

/**
 * The actions for this browser, or why there are none. @param own its subscription; undefined: it has none of this
 * person's
 */
function Here({ here, own, publicKey }: { here: PushHere; own: Subscription | undefined; publicKey: string }) {
  const texts = useNoticeTexts();
  const reload = useReload();
  const add = useMutation({ mutationFn: () => addHere(publicKey), onSettled: reload });
  const end = useMutation({ mutationFn: endHere, onSettled: reload });
  if (here.unable !== null) return <p className="max-w-prose text-sm text-warn">{texts.unable[here.unable]}</p>;
  if (own !== undefined) {
    return (
      <div className="flex flex-wrap items-center gap-3">
        <button type="button" className="button" disabled={end.isPending} onClick={() => end.mutate(own.id)}>
          {texts.unsubscribe}
        </button>
        <p className="min-w-0 flex-1 basis-56 text-xs text-muted">{texts.untilStopped}</p>
        <ErrorText error={end.error} />
      </div>
    );
  }
  return (
    <div className="space-y-2">
      <button type="button" className="button" disabled={add.isPending} onClick={() => add.mutate()}>
        {add.isPending ? texts.subscribing : texts.subscribe}
      </button>
      <ErrorText error={wordsOf(add.error, texts)} />
    </div>
  );
}

/** Subscribes this browser to notices, and replaces its earlier subscription. */
async function addHere(publicKey: string): Promise<void> {
  const before = subscriptionIdHere();
  const { id } = await client.notices.subscribe(await subscribeHere(publicKey));
  rememberSubscription(id);
  // May be gone by now, or another person's who was signed in here.
  if (before !== null) await client.notices.unsubscribe(before).catch(() => null);
}

/** Browsers' own messages are in no language of ours. */
function wordsOf(error: Error | null, texts: ReturnType<typeof useNoticeTexts>): Error | null {
  if (error instanceof NotAllowedError) return new Error(texts.unanswered);
  return error instanceof DOMException ? new Error(texts.failed(error.message)) : error;
}
