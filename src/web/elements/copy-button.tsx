import { useEffect, useState } from "react";
import { useElementTexts } from "../texts/elements.ts";

/** Copies a text to the clipboard, and confirms it. @param what name of the text, as screen readers say it */
export function CopyButton({ text, what, className = "button" }: { text: string; what: string; className?: string }) {
  const texts = useElementTexts();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  // Browsers offer the clipboard only over TLS and on localhost.
  if (!window.isSecureContext) return null;
  return (
    <>
      <button
        type="button"
        className={className}
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      >
        {copied ? texts.copied : texts.copy}
        <span className="sr-only"> {what}</span>
      </button>
      <output className="sr-only">{copied ? texts.copied : ""}</output>
    </>
  );
}
