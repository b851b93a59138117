-- works-from: 0027
-- People who have accounts in several organizations. A browser that a node of the version before signs in can't switch between them.

-- Address of the identity provider that signed a browser in; null: a link or a key did.
alter table browser_session add column issuer text;
-- Since when the operator's lists let somebody in no more, as of their last sign-in; null: they do, or an admin invited them.
alter table user_account add column refused_at timestamptz;
