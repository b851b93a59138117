/** An answer's fields, as each forge calls them. */
export type Answered = Readonly<Record<string, unknown>>;

/** Asks for what is at a path; with a body, makes it, or changes it. @throws Error if that is refused */
export type Ask = <Found = Answered>(path: string, body?: object, method?: "PUT") => Promise<Found>;

/** Asks below an address. @param authorization the header */
export function askBelow(base: string, authorization: string): Ask {
  return async function ask<Found>(path: string, body?: object, method?: "PUT"): Promise<Found> {
    const response = await fetch(`${base}${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        Authorization: authorization,
        "Content-Type": "application/json",
        // Bitbucket Data Center takes what no browser sent.
        "X-Atlassian-Token": "no-check",
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: "manual",
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as Found;
  };
}

/** Basic authentication by a token; without a name, as those forges want it that know whose it is. */
export function basic(token: string, username = ""): string {
  return `Basic ${Buffer.from(`${username}:${token}`).toString("base64")}`;
}
