import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useState } from "react";
import { hasWords } from "../elements/has-words.ts";
import { Picker, type PickerOption } from "../elements/picker.tsx";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useHomeTexts } from "../texts/home.ts";
import type { Draft } from "./draft.ts";
import { offeredQuery, sameAddress } from "./offered.ts";

const staleTime = 60_000;
/** Key of the choice for none. */
const none = "";

/** Chooses one of the organization's repositories, another one that its forges show, or any by its URL. */
export function RepositoryPicker({
  repository,
  onChange,
}: {
  repository: Draft["repository"];
  onChange: (repository: Draft["repository"]) => void;
}) {
  const texts = useHomeTexts().composer;
  const { loading } = useElementTexts();
  const [words, setWords] = useState("");
  const url = words.trim();
  const asked = useDeferredValue(url);
  const known = useInfiniteQuery({
    queryKey: ["repositories", "to choose"],
    queryFn: ({ pageParam }) => client.repository.list({ limit: 100, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    staleTime,
  });
  const all = known.data?.pages.flatMap(({ codeRepositories }) => codeRepositories) ?? [];
  const { fetchNextPage } = known;
  const hasMore = known.hasNextPage && !known.isFetching && known.error === null;
  // What is sought may be on any page.
  const isSought = hasMore && url !== "";
  useEffect(() => {
    if (isSought) void fetchNextPage();
  }, [isSought, fetchNextPage]);
  const found = useQuery({ ...offeredQuery(asked), enabled: asked !== "", placeholderData: keepPreviousData });
  const connected = all.filter(({ name, url: its }) => hasWords(`${name} ${its}`, url));
  const isOfWritten = asked === url && !found.isPlaceholderData;
  const offered = (url === "" ? [] : (found.data?.repositories ?? [])).filter(
    (one) =>
      // The answer to an earlier search may have repositories that do not match now.
      (isOfWritten || hasWords(`${one.name} ${one.url}`, url)) && !all.some((other) => sameAddress(other.url, one.url)),
  );
  const isUrl =
    /^(?:https?|ssh):\/\/\S+$|^\S+@[\w.-]+:\S+$/u.test(url) &&
    ![...connected, ...offered].some((one) => sameAddress(one.url, url));
  const options: PickerOption[] = [
    ...(isUrl ? [{ key: url, name: texts.takeUrl(url) }] : []),
    ...(words === "" ? [{ key: none, name: texts.noRepository }] : []),
    ...connected.map(({ url: its, name, integration }) => ({
      key: its,
      name,
      ...(integration !== undefined && { about: integration.name }),
    })),
    ...offered.map(({ url: its, name }) => ({ key: its, name, about: texts.notConnected })),
  ];
  const problems = [
    known.error?.message,
    found.error?.message,
    ...(found.data?.problems ?? []).map(({ text }) => text),
  ];
  const note = problems.find((problem) => problem !== undefined);
  return (
    <Picker
      label={texts.repository}
      icon="repositories"
      value={repository?.name ?? texts.noRepository}
      placeholder={texts.findRepository}
      words={words}
      onWords={setWords}
      options={options}
      chosen={repository?.url ?? none}
      onChoose={(key) => {
        if (key === none) return onChange(null);
        const one = connected.find((each) => each.url === key);
        const name = one?.name ?? offered.find((each) => each.url === key)?.name ?? shortName(key);
        onChange({ id: one?.id ?? null, name, url: key, branch: one?.branch ?? null });
      }}
      {...(hasMore && { onEnd: () => void fetchNextPage() })}
      {...(known.isLoading || known.isFetchingNextPage || found.isFetching
        ? { note: loading }
        : note !== undefined && { note })}
    />
  );
}

/** The last two parts of an address. */
function shortName(url: string): string {
  return url
    .replace(/(?:\.git)?\/*$/u, "")
    .split(/[/:]/u)
    .slice(-2)
    .join("/");
}
