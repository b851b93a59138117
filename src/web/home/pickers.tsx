import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { hasWords } from "../elements/has-words.ts";
import { Picker, type PickerOption } from "../elements/picker.tsx";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useHomeTexts } from "../texts/home.ts";
import type { Draft } from "./draft.ts";
import { useDefaultBranch } from "./offered.ts";

const staleTime = 60_000;
/** Key of the choice for none, or for the default. */
const none = "";

/** Chooses the branch that the pull request is to go to, among those that the forge has now. */
export function BranchPicker({
  repository,
  branch,
  onChange,
}: {
  repository: NonNullable<Draft["repository"]>;
  branch: string | null;
  onChange: (branch: string | null) => void;
}) {
  const texts = useHomeTexts().composer;
  const { loading } = useElementTexts();
  const [words, setWords] = useState("");
  const asked = useDeferredValue(words.trim());
  const { url } = repository;
  const found = useQuery({
    queryKey: ["branches", url, asked],
    queryFn: () => client.repository.branches(url, asked),
    staleTime,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const usual = useDefaultBranch(repository, true);
  const written = words.trim();
  const names = namesWith(written, found.data?.branches ?? []);
  const options: PickerOption[] = [
    ...(written === "" ? [{ key: none, name: texts.defaultBranch }] : []),
    ...names.map((name) => ({ key: name, name, ...(name === usual && { about: texts.isDefault }) })),
    // A branch that the forge does not list, or can't be asked for, can be written.
    ...(written === "" || names.includes(written) ? [] : [{ key: written, name: texts.takeUrl(written) }]),
  ];
  return (
    <Picker
      label={texts.branch}
      icon="branch"
      value={branch ?? usual ?? texts.defaultBranch}
      placeholder={texts.findBranch}
      words={words}
      onWords={setWords}
      options={options}
      chosen={branch ?? none}
      onChoose={(key) => onChange(key === none ? null : key)}
      {...(found.error !== null ? { note: found.error.message } : found.isLoading ? { note: loading } : {})}
    />
  );
}

/** The names that have what was written, that very name first: the answer may still be that to other words. */
function namesWith(written: string, names: readonly string[]): string[] {
  const found = names.filter((name) => hasWords(name, written));
  return found.includes(written) ? [written, ...found.filter((name) => name !== written)] : found;
}

/** Chooses the agent with its model: those that are available, or another model of one of them by its name. */
export function AgentPicker({ agent, onChange }: { agent: string | null; onChange: (agent: string | null) => void }) {
  const texts = useHomeTexts().composer;
  const { loading } = useElementTexts();
  const [words, setWords] = useState("");
  const known = useQuery({ queryKey: ["agents"], queryFn: () => client.agent.list(), staleTime });
  const available = known.data?.agents.filter((one) => one.available) ?? [];
  const listed = available.map(({ id, name, defaultModel }) => ({
    key: `${id}:${defaultModel ?? "default"}`,
    name,
    ...(defaultModel !== null && { about: defaultModel }),
  }));
  const written = words.trim();
  const isOther =
    /^[^:\s]+:\S+$/u.test(written) &&
    available.some(({ id }) => written.startsWith(`${id}:`)) &&
    !listed.some(({ key }) => key === written);
  const options: PickerOption[] = [
    ...(isOther ? [{ key: written, name: texts.takeAgent(written) }] : []),
    ...(written === "" ? [{ key: none, name: texts.defaultAgent }] : []),
    ...listed.filter(({ key, name }) => hasWords(`${name} ${key}`, words)),
  ];
  const provider = available.find(({ id }) => agent?.startsWith(`${id}:`));
  return (
    <Picker
      label={texts.agent}
      icon="agent"
      value={
        agent === null
          ? texts.defaultAgent
          : provider === undefined
            ? agent
            : `${provider.name} · ${agent.slice(provider.id.length + 1)}`
      }
      placeholder={texts.findAgent}
      words={words}
      onWords={setWords}
      options={options}
      chosen={agent ?? none}
      onChoose={(key) => onChange(key === none ? null : key)}
      {...(known.data === undefined && { note: known.error?.message ?? loading })}
    />
  );
}
