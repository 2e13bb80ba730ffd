//! Secrets by their own shape: tokens that begin with who made them, keys between `BEGIN` and `END`.
//!
//! The shapes are those that their makers document, so that scanners of repositories can find them; gitleaks (MIT) and GitHub's list of
//! patterns for secret scanning were read for which there are. The expressions are written anew.

use crate::{expression, replace};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Tokens. What stands before them must not be a part of a word.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r"(?x)
        (?:^|[^A-Za-z0-9_])
        (?P<secret>
            (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}               # Amazon: access key ids
          | AIza[A-Za-z0-9_\-]{30,}                           # Google: API keys
          | ya29\.[A-Za-z0-9_\-.]{20,}                        # Google: OAuth
          | GOCSPX-[A-Za-z0-9_\-]{20,}                        # Google: client secrets
          | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{20,}
          | gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct)-[A-Za-z0-9_\-]{16,} | GR1348941[A-Za-z0-9_\-]{16,}
          | xox[abeoprs]-[A-Za-z0-9\-]{8,} | xapp-[A-Za-z0-9\-]{16,}
          | (?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{8,} | sk_[A-Za-z0-9]{24,} | whsec_[A-Za-z0-9+/=]{16,}
          | sk-[A-Za-z0-9_\-]{20,}                            # several makers of language models
          | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_\-]{16,} | rubygems_[a-f0-9]{32,} | cio[A-Za-z0-9]{32}
          | hv[sbr]\.[A-Za-z0-9_\-]{16,} | [sb]\.[A-Za-z0-9]{24}(?:$|[^A-Za-z0-9])
          | SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}
          | do[opr]_v1_[a-f0-9]{32,} | HRKU-[A-Za-z0-9_\-]{20,} | fo1_[A-Za-z0-9_\-]{20,} | FlyV1\ [A-Za-z0-9_\-+/=,]{20,}
          | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,} | sq0[a-z]{3}-[A-Za-z0-9_\-]{20,} | EAAA[A-Za-z0-9_\-]{40,}
          | dapi[a-f0-9]{32} | dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_\-.]{20,} | dckr_pat_[A-Za-z0-9_\-]{20,}
          | glc_[A-Za-z0-9+/=]{20,} | glsa_[A-Za-z0-9_]{20,} | NRAK-[A-Z0-9]{20,} | nra[ak]-[A-Za-z0-9]{20,} | PMAK-[a-f0-9\-]{30,}
          | lin_api_[A-Za-z0-9]{20,} | ntn_[A-Za-z0-9]{20,} | secret_[A-Za-z0-9]{40,} | figd_[A-Za-z0-9_\-]{20,}
          | sntrys_[A-Za-z0-9+/=_]{20,} | sntryu_[a-f0-9]{32,} | phc_[A-Za-z0-9]{20,} | phx_[A-Za-z0-9]{20,}
          | pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_\-.=]{20,} | nfp_[A-Za-z0-9]{20,} | vercel_[A-Za-z0-9]{20,} | sbp_[a-f0-9]{32,}
          | r8_[A-Za-z0-9]{20,} | hf_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,} | tfp_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,}
          | ATATT3[A-Za-z0-9_\-=]{20,} | ATBB[A-Za-z0-9]{20,} | AC[a-f0-9]{32}:[a-f0-9]{32} | SK[a-f0-9]{32}
          | key-[a-f0-9]{32} | [a-f0-9]{32}-us\d{1,2} | xkeysib-[a-f0-9]{40,}[A-Za-z0-9\-]* | re_[A-Za-z0-9_]{20,}
          | [A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,} | atlasv1\.[A-Za-z0-9_\-=]{40,}
          | AGE-SECRET-KEY-1[A-Z0-9]{20,} | ops_ey[A-Za-z0-9_\-+/=]{20,} | A3-[A-Z0-9]{6}-[A-Z0-9\-]{20,}
          | eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.=]{8,} | eyJ[A-Za-z0-9_\-+/=]{40,}
          | \d{8,10}:AA[A-Za-z0-9_\-]{30,}                    # Telegram: bots
          | [MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}   # Discord: bots
        )",
    )
});

/// A private key, to its end or to that of the text.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    expression(r"(?s)-----BEGIN[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?P<secret>.*?)(?:-----END|\z)")
});

/// A key of PuTTY's.
static PUTTY: LazyLock<Regex> = LazyLock::new(|| expression(r"(?s)PuTTY-User-Key-File-\d:(?P<secret>.*)\z"));

pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let masked = replace(text, &KEY, |_| true);
    let masked = crate::then(masked, |text| replace(text, &PUTTY, |_| true));
    crate::then(masked, |text| replace(text, &TOKEN, |_| true))
}
