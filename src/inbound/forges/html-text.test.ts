import { describe, expect, it } from "vitest";
import { findMention } from "../../domain/conversations/mention.ts";
import { textOfHtml } from "./html-text.ts";

const mention = (html: string) => findMention(textOfHtml(html), "offstage");

describe("what a comment in HTML says", () => {
  it("is on lines, without tags and hidden elements", () => {
    expect(textOfHtml("<div>One&nbsp;<b>two</b> &amp; three<br>four</div><div><br></div><p>five</p>")).toBe(
      "One two & three\nfour\n\nfive",
    );
    expect(textOfHtml("<style>p { color: red }</style><ul><li>a</li><li>b</li></ul><!-- no --><img src=x>")).toBe(
      "- a\n- b",
    );
    expect(textOfHtml("@offstage look at a < b && c\n\n> words")).toBe("@offstage look at a < b && c\n\n> words");
  });
  it("calls Offstage at the beginning of a line, and a macro after a space of any kind", () => {
    expect(mention("<div>/offstage look</div>")).toEqual({ macro: null });
    expect(mention("<div>Hm.</div><div>/offstage look</div>")).not.toBeNull();
    expect(mention("<div>@offstage&nbsp;!fix the&nbsp;total</div>")).toEqual({ macro: "fix" });
    expect(mention('<a href="#" data-vss-mention="version:2.0,1">@offstage</a>&nbsp;look')).not.toBeNull();
  });
  it("has no mention in code, in a quotation, or in hidden elements", () => {
    expect(
      mention("<blockquote><div>@offstage look</div><p>/offstage look</p></blockquote><div>I would not.</div>"),
    ).toBeNull();
    expect(mention("<pre>\n/offstage look\n```\n@offstage look\n</pre>")).toBeNull();
    expect(mention("Say <code>` @offstage `look</code>.")).toBeNull();
    expect(mention("<script>@offstage look</script><!-- @offstage -->Hm.")).toBeNull();
    // The positive control.
    expect(mention("<blockquote>no</blockquote>@offstage look")).not.toBeNull();
    expect(mention("<pre>no</pre>@offstage look")).not.toBeNull();
  });
  it("takes no longer for what is made to take long", () => {
    for (const part of ["<blockquote>", "<code>", "`", "<pre>`", "<", "&nbsp;", "<div><br>"])
      expect(typeof textOfHtml(`<p>${part.repeat(65_000 / part.length)}`)).toBe("string");
  });
});
