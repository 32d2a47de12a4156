//! Medians and ranges.

/// Several measurements of one thing.
#[derive(Clone, Debug)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// Of at least one measurement.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new(mut measured: Vec<f64>) -> Self {
        assert!(!measured.is_empty(), "a figure needs a measurement");
        measured.sort_by(f64::total_cmp);
        Self(measured)
    }

    /// The middle one, or the mean of the two in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        let (count, middle) = (self.0.len(), self.0.len() / 2);
        if count % 2 == 1 {
            self.0[middle]
        } else {
            f64::midpoint(self.0[middle - 1], self.0[middle])
        }
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// `median (min..max)`, with figures as people read them.
    #[must_use]
    pub fn shown(&self) -> String {
        format!(
            "{} ({}..{})",
            round(self.median()),
            round(self.min()),
            round(self.max())
        )
    }
}

/// Three digits that count.
#[must_use]
pub fn round(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2}M", v / 1e6),
        v if v >= 1e5 => format!("{:.0}k", v / 1e3),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The value below which `share` of the sorted ones lie.
#[must_use]
pub fn quantile(sorted: &[u64], share: f64) -> u64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}
