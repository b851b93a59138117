/** The address of a repository of the test forge as Azure DevOps writes it: the word `_git` stands before its name. */
export function asAzure(url: string): string {
  return url.replace(/\/([^/]+)$/u, "/_git/$1");
}
