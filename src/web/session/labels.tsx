import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { announce } from "../elements/announce.tsx";
import { Picker, type PickerOption } from "../elements/picker.tsx";
import { client, useMay } from "../query.ts";
import { useSessionTexts } from "../texts/session.ts";

/** A session's labels, and a list in which those who may add and remove some. */
export function Labels({ session: { id, labels } }: { session: SessionDetail }) {
  const texts = useSessionTexts().labels;
  const queries = useQueryClient();
  const [words, setWords] = useState("");
  const may = useMay("write");
  const known = useQuery({
    queryKey: ["labels"],
    queryFn: () => client.label.list({ limit: 100 }),
    staleTime: 60_000,
    enabled: may,
  });
  const change = useMutation({
    mutationFn: (label: string) =>
      client.session.labels(id, labels.includes(label) ? { remove: [label] } : { add: [label] }),
    onSuccess: (session) => {
      queries.setQueryData(["session", id], session);
      return queries.invalidateQueries({ queryKey: ["labels"] });
    },
    onError: (error) => announce(error.message),
  });
  const named = labels.join(", ");
  if (!may) {
    return labels.length === 0 ? null : (
      <div>
        <dt className="sr-only">{texts.title}</dt>
        <dd>{named}</dd>
      </div>
    );
  }
  const written = words.trim();
  const all = [...new Set([...labels, ...(known.data?.labels ?? [])])];
  const options: PickerOption[] = [
    ...all
      .filter((label) => label.toLowerCase().includes(written.toLowerCase()))
      .map((label) => ({ key: label, name: label, ...(labels.includes(label) && { about: texts.has }) })),
    ...(written === "" || all.includes(written) ? [] : [{ key: written, name: texts.add(written) }]),
  ];
  return (
    <div className="-my-1">
      <dt className="sr-only">{texts.title}</dt>
      <dd>
        <Picker
          label={texts.title}
          icon="label"
          value={named === "" ? texts.none : named}
          placeholder={texts.find}
          words={words}
          onWords={setWords}
          options={options}
          chosen={null}
          onChoose={(label) => change.mutate(label)}
          isSmall
        />
      </dd>
    </div>
  );
}
