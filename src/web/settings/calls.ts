import { client } from "../query.ts";

/** Calls that only this page makes: the client comes with every page, and has no room for them. */
export const calls = {
  shares: (cursor: string | undefined) =>
    client.call(
      "listedSharesPage",
      `/share/list?${new URLSearchParams({ limit: "20", ...(cursor !== undefined && { cursor }) }).toString()}`,
    ),
  /** Begins to erase the organization: from the answer on none of its people is signed in. */
  erase: (name: string) => client.call("emptySchema", "/organization/erase", { name }),
};
/** The address at which a signed-in browser downloads the organization's export. */
export const exportAddress = "/organization/export";
