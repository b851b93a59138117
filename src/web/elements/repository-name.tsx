/** A repository by its name, which leads to it where its address is one of the web. */
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
