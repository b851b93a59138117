import { useEffect, useState } from "react";

/** Puts a text on the clipboard, and says so. @param what it is, for those who only hear the button */
export function CopyButton({ text, what, className = "button" }: { text: string; what: string; className?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  // Browsers give pages the clipboard over TLS alone, and on the machine itself.
  if (!window.isSecureContext) return null;
  return (
    <>
      <button
        type="button"
        className={className}
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      >
        {copied ? "Copied" : "Copy"}
        <span className="sr-only"> {what}</span>
      </button>
      <output className="sr-only">{copied ? "Copied" : ""}</output>
    </>
  );
}
