import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Icon } from "../../elements/icon.tsx";
import { ErrorText, Loading } from "../../elements/notice.tsx";
import { useElementTexts } from "../../texts/elements.ts";
import { useFilesTexts } from "../../texts/files.ts";
import { formatBytes } from "../../texts/formats.ts";
import { WholeFile } from "../changes/file-diff.tsx";
import { readPart } from "./calls.ts";

/** One file of a session's workspace, part by part. */
export function FileView({
  id,
  path,
  refetchInterval,
  onBack,
}: {
  id: string;
  path: string;
  refetchInterval: number | false;
  onBack: () => void;
}) {
  const texts = useFilesTexts();
  const { showMore, tryAgain } = useElementTexts();
  const parts = useInfiniteQuery({
    queryKey: ["file", id, path],
    queryFn: ({ pageParam }) => readPart(id, path, pageParam),
    initialPageParam: 0,
    getNextPageParam: (part) => part.nextOffset ?? undefined,
    refetchInterval,
  });
  const back = useRef<HTMLButtonElement>(null);
  // The row that was pressed is gone: keys go on from here.
  useEffect(() => back.current?.focus(), []);
  const isWhole = !parts.hasNextPage && (parts.data?.pages.length ?? 0) > 1;
  const end = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // The button that had the focus is gone with the last part.
    if (isWhole && document.activeElement === document.body) end.current?.focus({ preventScroll: true });
  }, [isWhole]);
  const [first] = parts.data?.pages ?? [];
  const text = first?.text == null ? null : (parts.data?.pages ?? []).map((part) => part.text ?? "").join("");
  const name = path.slice(path.lastIndexOf("/") + 1);
  return (
    <section aria-label={texts.of(name)} className="space-y-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <button ref={back} type="button" className="button button-quiet" onClick={onBack}>
          <Icon name="chevron" className="size-3 rotate-180" />
          {texts.back}
        </button>
        <h2 className="min-w-0 flex-1 font-mono text-xs break-all">
          <bdi>{path}</bdi>
        </h2>
        {first !== undefined && (
          <span className="text-xs text-muted tabular-nums" title={texts.from[first.from]}>
            {formatBytes(first.bytes)}
          </span>
        )}
        {text !== null && <CopyButton text={text} what={texts.copy} className="cursor-pointer text-xs underline" />}
      </div>
      {first === undefined && parts.error === null && <Loading lines={8} />}
      {parts.error !== null && (
        <div className="space-y-2">
          <ErrorText error={parts.error} />
          <button type="button" className="button" onClick={() => void parts.refetch()}>
            {tryAgain}
          </button>
        </div>
      )}
      {first !== undefined && (
        <>
          <p className="text-xs text-muted">{texts.from[first.from]}</p>
          {first.type === "link" && text !== null ? (
            <p className="text-sm">
              {texts.leadsTo} <bdi className="font-mono text-xs break-all">{text}</bdi>
            </p>
          ) : text === null ? (
            <p className="py-8 text-center text-sm text-muted">{texts.noText}</p>
          ) : text === "" ? (
            <p className="py-8 text-center text-sm text-muted">{texts.empty}</p>
          ) : (
            <WholeFile name={name} text={text} />
          )}
          {parts.hasNextPage && (
            <button
              type="button"
              className="button w-full"
              aria-disabled={parts.isFetchingNextPage}
              onClick={() => !parts.isFetchingNextPage && void parts.fetchNextPage()}
            >
              {showMore}
            </button>
          )}
          {isWhole && (
            <p ref={end} tabIndex={-1} className="text-xs text-muted outline-none">
              {texts.end}
            </p>
          )}
          {!first.complete && text !== null && !parts.hasNextPage && (
            <p className="text-sm text-warn">{texts.partly}</p>
          )}
        </>
      )}
    </section>
  );
}
