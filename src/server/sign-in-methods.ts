import type { Config } from "../config/config.ts";
import type { SignInMethod } from "../domain/people/user.ts";

/** Makes the configured sign-in methods, and does not load the others. */
export async function createSignInMethods({ oidc, githubSignIn }: Config): Promise<SignInMethod[]> {
  const methods: SignInMethod[] = [];
  if (oidc !== null) methods.push((await import("../sign-in/oidc.ts")).createOidc(oidc));
  if (githubSignIn !== null) methods.push((await import("../sign-in/github.ts")).createGitHubSignIn(githubSignIn));
  return methods;
}
