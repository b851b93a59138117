import { useSessionTexts } from "../../texts/session.ts";
import { useFold } from "./folds.tsx";
import { Markdown } from "./markdown.tsx";

/** A longer message is folded to its beginning. */
const longest = { characters: 1_500, lines: 20 };

/** A message to the agent, as Markdown; a long one is folded. */
export function Request({ foldKey, text }: { foldKey: string; text: string }) {
  const texts = useSessionTexts().transcript;
  const [open, setOpen] = useFold(foldKey);
  const isLong = text.length > longest.characters || text.split("\n", longest.lines + 1).length > longest.lines;
  return (
    <>
      <div
        dir="auto"
        className={`[&_p]:whitespace-pre-line ${isLong && !open ? "max-h-72 overflow-hidden mask-b-from-75%" : ""}`}
      >
        <Markdown text={text} />
      </div>
      {isLong && (
        <button
          type="button"
          aria-expanded={open}
          className="mt-2 cursor-pointer text-sm text-accent underline"
          onClick={() => setOpen(!open)}
        >
          {open ? texts.showLess : texts.showAll}
        </button>
      )}
    </>
  );
}
