import type { components as CloudComponents } from "@coderabbitai/bitbucket/cloud/openapi";
import type { components as ServerComponents } from "@coderabbitai/bitbucket/server/openapi";
import type * as GitLab from "@gitbeaker/core";
import type { Build } from "azure-devops-node-api/interfaces/BuildInterfaces.js";
import type * as Git from "azure-devops-node-api/interfaces/GitInterfaces.js";
import type { WorkItem } from "azure-devops-node-api/interfaces/WorkItemTrackingInterfaces.js";
import { expectTypeOf, test } from "vitest";
import type * as Azure from "../../src/inbound/forges/azure.ts";
import type * as AzureForm from "../../src/inbound/forges/azure-form.ts";
import type * as AzureWorkItems from "../../src/inbound/forges/azure-work-items.ts";
import type * as DataCenter from "../../src/inbound/forges/bitbucket-data-center.ts";
import type * as Bitbucket from "../../src/inbound/forges/bitbucket-form.ts";
import type * as GitLabConversations from "../../src/inbound/forges/gitlab-conversations.ts";
import type * as GitLabRest from "../../src/inbound/forges/gitlab.ts";

// What is read of deliveries, held against the types that others publish of them or of what they hold. The compiler is what fails:
// `npm run check`. GitHub's readers are written in its own types.

type Item<T> = NonNullable<T> extends readonly (infer Each)[] ? Item<Each> : NonNullable<T>;
/** Without what stands for any other field. */
type Named<T> = { [Field in keyof T as string extends Field ? never : Field]: T[Field] };
type FieldsOf<T> = T extends unknown ? keyof Named<T> : never;
type ValueOf<T, Field> = T extends unknown ? (Field extends keyof T ? T[Field] : never) : never;
/** Paths of the fields that are read and that the published type does not have. */
type Undocumented<Read, Published, Path extends string = ""> = unknown extends Read
  ? never
  : // Any value is documented there.
    0 extends 1 & Published
    ? never
    : Item<Read> extends infer Given extends object
      ? {
          [Field in FieldsOf<Given> & string]: Field extends FieldsOf<Item<Published>>
            ? Undocumented<ValueOf<Given, Field>, ValueOf<Item<Published>, Field>, `${Path}${Field}.`>
            : `${Path}${Field}`;
        }[FieldsOf<Given> & string]
      : never;

test("the search finds a field that is not documented, in lists and in either of two types", () => {
  interface Read {
    known: unknown;
    of?: { name: unknown; wrong: unknown }[];
  }
  type Published = { known: number } | { of: { name: string | null; [other: string]: unknown }[] | null };
  expectTypeOf<Undocumented<Read, Published>>().toEqualTypeOf<"of.wrong">();
});

test("GitLab's deliveries, but for what its documentation alone has", () => {
  // https://docs.gitlab.com/user/project/integrations/webhook_events/
  expectTypeOf<
    Undocumented<GitLabConversations.IssuePayload, GitLab.WebhookIssueEventSchema>
  >().toEqualTypeOf<"changes.assignees">();
  type State = "re_requested" | "state";
  expectTypeOf<
    Undocumented<GitLabConversations.MergeRequestPayload, GitLab.WebhookMergeRequestEventSchema>
  >().toEqualTypeOf<`changes.reviewers.${"current" | "previous"}.${State}` | "object_attributes.oldrev">();
  type Note = GitLab.WebhookMergeRequestNoteEventSchema | GitLab.WebhookIssueNoteEventSchema;
  expectTypeOf<Undocumented<GitLabConversations.NotePayload, Note>>().toEqualTypeOf<
    "object_attributes.action" | "object_attributes.position"
  >();
  expectTypeOf<Undocumented<GitLabRest.PushPayload, GitLab.WebhookPushEventSchema>>().toBeNever();
  expectTypeOf<Undocumented<GitLabRest.PipelinePayload, GitLab.WebhookPipelineEventSchema>>().toBeNever();
  expectTypeOf<Undocumented<GitLabRest.ReleasePayload, GitLab.WebhookReleaseEventSchema>>().toBeNever();
});

test("what Bitbucket Cloud's deliveries hold, as its API has it, but for what its examples of deliveries alone have", () => {
  // https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
  type Schemas = CloudComponents["schemas"];
  type Account = Schemas["account"] | Schemas["user"] | Schemas["team"];
  expectTypeOf<Undocumented<Bitbucket.Account, Account>>().toEqualTypeOf<"username">();
  // The API calls people accounts there, of which a user is one.
  type OfUser = "account_id" | "nickname" | "username";
  expectTypeOf<Undocumented<Bitbucket.PullRequest, Schemas["pullrequest"]>>().toEqualTypeOf<
    `author.${OfUser}` | `reviewers.${OfUser}` | "description"
  >();
  expectTypeOf<Undocumented<Bitbucket.Issue, Schemas["issue"]>>().toEqualTypeOf<
    `assignee.${OfUser}` | `reporter.${OfUser}`
  >();
  expectTypeOf<Undocumented<Bitbucket.Comment, Schemas["comment"]>>().toEqualTypeOf<`user.${OfUser}`>();
  expectTypeOf<Undocumented<Bitbucket.Repository, Schemas["repository"]>>().toBeNever();
  expectTypeOf<Undocumented<Bitbucket.CommitStatus, Schemas["commitstatus"]>>().toEqualTypeOf<"commit">();
});

test("what Bitbucket Data Center's deliveries hold, likewise", () => {
  // https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html
  type Schemas = ServerComponents["schemas"];
  type Self = "links.self";
  expectTypeOf<Undocumented<DataCenter.PullRequest, Schemas["RestPullRequest"]>>().toEqualTypeOf<
    "author" | "properties" | `${"fromRef" | "toRef"}.repository.${Self}`
  >();
  expectTypeOf<Undocumented<DataCenter.Payload["comment"], Schemas["RestComment"]>>().toBeNever();
  expectTypeOf<Undocumented<DataCenter.Payload["commits"], Schemas["RestCommit"]>>().toBeNever();
  expectTypeOf<Undocumented<DataCenter.Payload["participant"], Schemas["RestPullRequestParticipant"]>>().toBeNever();
  expectTypeOf<Undocumented<DataCenter.Payload["changes"], Schemas["RestRefChange"]>>().toBeNever();
  expectTypeOf<Undocumented<DataCenter.Repository, Schemas["RestRepository"]>>().toEqualTypeOf<Self>();
  expectTypeOf<Undocumented<DataCenter.User, Schemas["RestApplicationUser"]>>().toBeNever();
});

test("what deliveries of Azure DevOps hold, as its API has it", () => {
  expectTypeOf<Undocumented<AzureForm.PullRequest, Git.GitPullRequest>>().toBeNever();
  expectTypeOf<Undocumented<AzureForm.Repository, Git.GitRepository>>().toBeNever();
  type Push = Pick<Azure.Resource, "pushedBy" | "refUpdates" | "commits" | "repository">;
  expectTypeOf<Undocumented<Push, Git.GitPush>>().toBeNever();
  expectTypeOf<Undocumented<Azure.Comment, Git.Comment>>().toBeNever();
  // The last is of version 1.0 of the resource.
  expectTypeOf<Undocumented<Azure.Build, Build>>().toEqualTypeOf<"sourceGetVersion">();
  expectTypeOf<Undocumented<AzureWorkItems.WorkItem, WorkItem>>().toEqualTypeOf<"revision" | "workItemId">();
});
