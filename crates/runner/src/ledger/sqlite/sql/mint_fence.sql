-- mint_fence: only grows; a claim that is refused rolls it back before anyone saw it
UPDATE runner_fence SET minted = minted + 1 RETURNING minted;
