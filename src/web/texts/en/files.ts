/** Texts of the files of a session's workspace. */
export const english = {
  tree: "Files of the workspace",
  notShown: "The files can’t be shown",
  noFiles: "The workspace has no files.",
  noFilesIn: "Empty",
  loading: "Loading …",
  failed: (why: string) => `Could not be loaded: ${why}. Try again`,
  more: "Show more",
  cut: "There are more files here than are listed.",
  back: "All files",
  changes: { added: "new", changed: "changed" },
  types: { folder: "folder", file: "file", link: "link", submodule: "submodule", other: "no file" },
  unnamed: "Its name is no text that it could be asked for by.",
  from: {
    checkpoint: "As the last checkpoint has it, while the agent works",
    work: "As the agent left it",
    pushed: "As it was pushed",
    start: "As the session began",
  },
  copy: "the file",
  empty: "The file is empty.",
  noText: "This is no text.",
  leadsTo: "A link to",
  partly: "Only the first MiB of the file can be shown.",
  end: "That is all of it.",
  of: (name: string) => `Content of ${name}`,
};
/** See `english`. */
export type FilesTexts = typeof english;
