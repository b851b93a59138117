import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { Field, fieldOf } from "../elements/field.tsx";
import { linesOf } from "../elements/lines.ts";
import { Unsaved } from "../elements/unsaved.tsx";
import { useEdits } from "../elements/use-edits.ts";
import { useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Loaded, SaveBar, Section, Shown } from "./section.tsx";

/** The hosts that a repository's sandboxes may reach: each is a way out for secrets, so only an admin changes them. */
export function Egress({ id }: { id: string }) {
  const texts = useRepositoryTexts().egress;
  const egress = useQuery({ queryKey: ["repository", id, "egress"], queryFn: () => calls.egress(id) });
  const may = useMay("admin");
  return (
    <Section title={texts.title} about={texts.about}>
      <Loaded query={egress}>
        {({ egress: hosts }) =>
          may ? <EgressForm id={id} hosts={hosts} /> : <Shown name={texts.hosts} value={hosts.join("\n")} />
        }
      </Loaded>
    </Section>
  );
}

function EgressForm({ id, hosts }: { id: string; hosts: readonly string[] }) {
  const texts = useRepositoryTexts().egress;
  const queries = useQueryClient();
  const { values, edit, onSaved } = useEdits({ text: hosts.join("\n") });
  const { text } = values;
  const save = useMutation({
    mutationFn: (sent: typeof values) => calls.setEgress(id, linesOf(sent.text)),
    onSuccess: (saved, sent) => {
      queries.setQueryData(["repository", id, "egress"], saved);
      onSaved(sent, { text: saved.egress.join("\n") });
    },
  });
  const wrong = fieldOf(save.error, ["egress"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate(values);
  };
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <Field label={texts.hosts} hint={texts.hint} error={wrong === null ? null : save.error}>
        {(attributes) => (
          <textarea
            {...attributes}
            rows={3}
            spellCheck={false}
            autoCapitalize="none"
            className="field max-h-80 field-sizing-content font-mono"
            value={text}
            onChange={({ target }) => {
              edit("text", target.value);
              save.reset();
            }}
          />
        )}
      </Field>
      <Unsaved isChanged={linesOf(text).join("\n") !== hosts.join("\n")} />
      <SaveBar isPending={save.isPending} isSaved={save.isSuccess} error={wrong === null ? save.error : null} />
    </form>
  );
}
