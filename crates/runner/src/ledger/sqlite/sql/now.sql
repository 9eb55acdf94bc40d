-- now: the clock that decides what is due
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now;
