use sqlx::PgPool;

/// Pays out, once for each key and never for a run that has been overtaken. Answers with a status.
pub async fn payout(db: &PgPool, key: &str, job: &str, fence: i64, amount: i64) -> sqlx::Result<u16> {
    let mut tx = db.begin().await?;
    // Compare and set: the highest fence seen so far may only be replaced by one that is not lower.
    let sql = "INSERT INTO fences (job, fence) VALUES ($1, $2)
               ON CONFLICT (job) DO UPDATE SET fence = $2 WHERE fences.fence <= $2";
    if sqlx::query(sql).bind(job).bind(fence).execute(&mut *tx).await?.rows_affected() == 0 {
        return Ok(409); // A later run has been here: this one was given up on, and does not know it.
    }
    // The key: a request that has been answered before, or whose answer got lost, changes nothing.
    let sql = "INSERT INTO seen (key) VALUES ($1) ON CONFLICT DO NOTHING";
    if sqlx::query(sql).bind(key).execute(&mut *tx).await?.rows_affected() == 1 {
        let sql = "INSERT INTO payouts (amount) VALUES ($1)";
        sqlx::query(sql).bind(amount).execute(&mut *tx).await?;
    }
    tx.commit().await?; // Fence, key and payout together, or none of them.
    Ok(200)
}
