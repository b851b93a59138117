/** Characters of a message that quotes the file. */
const longestProblem = 500;

/** A message of one line, well-formed, that quotes no more than it should. */
export function cutProblem(message: string): string {
  const [line = ""] = message.split("\n", 1);
  return (line.length > longestProblem ? `${line.slice(0, longestProblem)}…` : line).toWellFormed();
}
