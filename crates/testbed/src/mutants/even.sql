-- even
SELECT number FROM numbers WHERE number > 0 AND even
