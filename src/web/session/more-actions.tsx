import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { announce } from "../elements/announce.tsx";
import { Confirmation } from "../elements/dialog.tsx";
import { Icon } from "../elements/icon.tsx";
import { Menu, type MenuItem } from "../elements/menu.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, isShared, useMay } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";
import { download } from "./download.ts";

const ShareLinks = lazy(() =>
  import("./share-links.tsx").then(({ ShareLinks: component }) => ({ default: component })),
);

/**
 * The less frequent actions for a session: download its work, copy its link; archive or delete it, for those who may.
 */
export function MoreActions({ session }: { session: SessionDetail }) {
  const texts = useSessionTexts().actions;
  const [isAsking, setAsking] = useState(false);
  const [isSharing, setSharing] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { id } = session;
  const remove = useMutation({
    mutationFn: () => client.session.delete(id),
    onSuccess: async () => {
      await navigate({ to: "/" });
      queries.removeQueries({ queryKey: ["session", id] });
      await queries.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  return (
    <>
      <Menu
        label={texts.more}
        items={useMenuItems(session, { onDelete: () => setAsking(true), onShare: () => setSharing(true) })}
      >
        <Icon name="more" />
      </Menu>
      {isAsking && (
        <Confirmation
          button={texts.delete}
          question={texts.deleteQuestion}
          onConfirm={() => remove.mutate()}
          onClosed={() => setAsking(false)}
        >
          {texts.deleteText}
        </Confirmation>
      )}
      <Suspense>{isSharing && <ShareLinks sessionId={id} onClosed={() => setSharing(false)} />}</Suspense>
      <ErrorText error={remove.error} />
    </>
  );
}

function useMenuItems(
  { id, branchName, htmlUrl, status, archivedAt }: SessionDetail,
  { onDelete, onShare }: { readonly onDelete: () => void; readonly onShare: () => void },
): MenuItem[] {
  const texts = useSessionTexts().actions;
  const queries = useQueryClient();
  const may = useMay("write");
  const name = branchName.replaceAll("/", "-");
  const tell = (error: Error): void => announce(error.message);
  const save = (asked: Promise<string>, file: string, type: string): void =>
    void asked.then((text) => download(file, type, text), tell);
  const put = (verb: "archive" | "unarchive"): void =>
    void client.session[verb](id).then((session) => {
      queries.setQueryData(["session", id], session);
      announce(verb === "archive" ? texts.archived : texts.unarchived);
    }, tell);
  const isAtRest = isFinal(status) || status === "draft";
  return [
    { name: texts.patch, icon: "download", run: () => save(client.session.patch(id), `${name}.patch`, "text/x-diff") },
    {
      name: texts.transcript,
      icon: "download",
      run: () => save(client.session.transcript(id), `${name}.md`, "text/markdown"),
    },
    ...(window.isSecureContext && !isShared
      ? [
          {
            name: texts.copyLink,
            icon: "copy" as const,
            run: () => void navigator.clipboard.writeText(htmlUrl).then(() => announce(texts.linkCopied), tell),
          },
        ]
      : []),
    ...(may ? [{ name: texts.share, icon: "person" as const, run: onShare }] : []),
    ...(may && archivedAt !== null
      ? [{ name: texts.unarchive, icon: "archive" as const, run: () => put("unarchive") }]
      : []),
    ...(may && archivedAt === null && isAtRest
      ? [{ name: texts.archive, icon: "archive" as const, run: () => put("archive") }]
      : []),
    ...(may && isAtRest ? [{ name: texts.delete, icon: "delete" as const, run: onDelete }] : []),
  ];
}
