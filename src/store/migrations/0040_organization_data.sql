-- works-from: 0027
-- Organizations that were asked to be erased. A row stays as the record that it happened; it has nothing of the organization but
-- its id, which nothing else has any more. Without a reference, since it outlives the organization.
create table erasure (
  organization_id uuid primary key,
  asked_at timestamptz not null default now(),
  -- When the last row was gone; null: it is under way, and whoever finds it continues.
  finished_at timestamptz
);

-- What the events of a session that has ended take in the database, and when that was counted; null: not yet. Housekeeping counts
-- it once for each time that the session ends, so that appending an event costs nothing more.
alter table session add column event_bytes bigint;
alter table session add column event_bytes_at timestamptz;

-- What the search compares (src/store/sessions/search-index.ts asks it the same way): the words of a text in lower case, one space
-- between two. A word is a run of letters and digits of any script, in its compatibility form (NFKC). PostgreSQL's own parser of
-- texts depends on the database's locale: with C it folds ASCII alone, and takes typographic quotes for parts of words. So capitals
-- are folded by a collation that knows all scripts, if there is one, and what separates words is listed by code point.
do $create$
declare
  folding text := case
    when current_setting('server_encoding') <> 'UTF8' then null
    when exists (select from pg_collation where collname = 'pg_c_utf8' and collnamespace = 'pg_catalog'::regnamespace)
      then 'pg_catalog.pg_c_utf8'
    when exists (select from pg_collation where collname = 'und-x-icu' and collnamespace = 'pg_catalog'::regnamespace)
      then 'pg_catalog."und-x-icu"' end;
  folded text := case when current_setting('server_encoding') <> 'UTF8' then 'lower(content)'
    -- One sigma, wherever in a word it stands, and an i from a capital with a dot.
    else format($expression$replace(replace(lower(normalize(content, nfkc) %s), chr(962), chr(963)), 'i' || chr(775), 'i')$expression$,
      coalesce('collate ' || folding, '')) end;
begin
  execute format($function$
    create function search_fold(content text) returns text language plpgsql immutable strict parallel safe as $body$
    declare
      folded text collate "C" := content;
    begin
      if octet_length(content) = char_length(content) then
        folded := lower(content collate "C");
      else
        folded := regexp_replace((%s) collate "C", '[\u0080-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7'
          '\u037e\u0387\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u0609-\u060d\u061b-\u061f'
          '\u066a-\u066d\u06d4\u0964\u0965\u0e3f\u0e4f\u0e5a\u0e5b\u1360-\u1368\u17d4-\u17da\u1800-\u180a\u2000-\u206f'
          '\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30a0\u30fb'
          '\ufe00-\ufe6f\ufff0-\uffff\U0001f000-\U0001faff]+', ' ', 'g');
      end if;
      return btrim(regexp_replace(folded, '[\u0001-\u002f\u003a-\u0060\u007b-\u007f]+', ' ', 'g'));
    end $body$ $function$, folded);
end $create$;

-- The same with what a part of a word is found by in scripts that put no spaces between words (Chinese, Japanese, Thai, Lao, Burmese,
-- Khmer) or much into one word (Korean): each two characters that follow each other, and the last one.
create function search_text(content text) returns text language plpgsql immutable strict parallel safe as $$
declare
  words text collate "C" := search_fold(content);
  unspaced constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u302f\u3031-\u30ff\u3400-\u4dbf'
    '\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]';
begin
  if octet_length(words) > char_length(words) and words ~ unspaced then
    words := regexp_replace(words, '(' || unspaced || '+)', ' \1 ', 'g');
    -- Pairs from each first character, then from each second one.
    words := btrim(regexp_replace(
      regexp_replace(words, '(' || unspaced || '{2})', '\1 ', 'g') || ' ' ||
      regexp_replace(regexp_replace(words, ' ' || unspaced, ' ', 'g'), '(' || unspaced || '{2})', '\1 ', 'g'),
      ' +', ' ', 'g'));
  end if;
  -- A lexeme has at most 2,046 bytes, a search 500 characters.
  if octet_length(words) > 2000 then
    words := (select string_agg(left(word, 500), ' ') from unnest(string_to_array(words, ' ')) word);
  end if;
  return words;
end $$;

-- Each word of a session under the four days in which it was made, of its organization alone, as 0022_search.sql has it.
create function session_lexemes(organization_id uuid, created_at timestamptz, title text, description text)
returns tsvector language plpgsql immutable parallel safe set search_path from current as $$
declare
  words text := search_text(title || ' ' || left(description, 20000));
  place text := encode(substring(uuid_send(organization_id) from 14), 'base64')
    || to_hex(floor(extract(epoch from created_at) / 345600)::integer) || '/';
begin
  if words = '' then return ''::tsvector; end if;
  return array_to_tsvector(string_to_array(place || replace(words, ' ', ' ' || place), ' '));
end $$;
