-- works-from: 0027
-- The user who created an automation and is told if it is paused or silent; null: nobody in particular, as of one that a file describes.
alter table automation add column created_by uuid;
