import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import type { Automation } from "../../domain/automations/automation.ts";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";

/** Chooses the automations that a key may start. */
export function KeyAutomations({
  chosen,
  error,
  onChange,
}: {
  chosen: readonly string[];
  error: Error | null;
  onChange: (chosen: readonly string[]) => void;
}) {
  const texts = useSettingsTexts().keys;
  const about = useId();
  return (
    <fieldset className="min-w-0 space-y-1 text-sm" aria-describedby={about}>
      <legend className="font-medium">{texts.chosenLegend}</legend>
      <div className="max-h-60 overflow-y-auto rounded-md border border-line px-3">
        <PagedList
          label={texts.chosenLegend}
          queryKey={["automations", "of a key"]}
          readPage={(cursor) => client.automation.list({ limit: 100, cursor })}
          itemsOf={(page) => page.automations}
          empty={texts.noAutomations}
          className="divide-y divide-line"
        >
          {({ id, name }) => (
            <li key={id}>
              <label className="flex min-h-8 items-center gap-2">
                <input
                  type="checkbox"
                  checked={chosen.includes(id)}
                  onChange={({ target }) =>
                    onChange(target.checked ? [...chosen, id] : chosen.filter((each) => each !== id))
                  }
                />
                <bdi className="min-w-0 wrap-anywhere">{name}</bdi>
              </label>
            </li>
          )}
        </PagedList>
      </div>
      <div id={about}>
        <ErrorText error={error} />
      </div>
    </fieldset>
  );
}

/** Most automations whose names are shown at a key; of more only their number. */
const mostNamed = 3;

/** Which automations a key may start, within a line. */
export function OnlyAutomations({ ids }: { ids: readonly string[] }) {
  const texts = useSettingsTexts().keys;
  const isNamed = ids.length <= mostNamed;
  const found = useQuery({
    queryKey: ["automations", "named", ...ids],
    // One that was deleted since has no name any more.
    queryFn: () => Promise.all(ids.map((id) => client.automation.get(id).catch(() => null))),
    enabled: isNamed,
  });
  const names = found.data?.filter((one): one is Automation => one !== null).map(({ name }) => name);
  return isNamed && names?.length === ids.length ? texts.onlyNamed(names.join(", ")) : texts.onlyCounted(ids.length);
}
