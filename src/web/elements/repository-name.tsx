/** A repository's name, as a link if its address is http(s). */
export function RepositoryName({
  repository: { name, url },
}: {
  repository: { readonly name: string; readonly url: string };
}) {
  if (!/^https?:\/\//u.test(url)) return name;
  return (
    <a href={url} target="_blank" rel="noreferrer noopener" className="hover:underline">
      {name}
    </a>
  );
}
