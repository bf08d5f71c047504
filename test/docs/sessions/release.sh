# A checkout with what is here, committed, and the archive that the first lines unpack: that of the last release, under this version's name.
# test/release makes the release of the same commit again: its time is that of test/release/checkout.ts.
export GIT_COMMITTER_DATE=2026-01-02T03:04:05Z
export GIT_AUTHOR_NAME=Tester GIT_AUTHOR_EMAIL=tester@shop.example GIT_COMMITTER_NAME=Tester GIT_COMMITTER_EMAIL=tester@shop.example
released=$PWD/checkout
mkdir "$released"
git -C "$CHECKOUT" ls-files -z --cached --others --exclude-standard | (cd "$CHECKOUT" && xargs -0 ls -d 2>>"$SESSION/gone") | tar -C "$CHECKOUT" -c -T - | tar -C "$released" -x
cd "$released"
for shared in node_modules .cache; do ln -sfn "$CHECKOUT/$shared" $shared; done
# Older than what is installed: nothing is installed anew.
touch -d 2020-01-01 package.json package-lock.json
git init --quiet && printf '%s\n' node_modules .cache '*.pem' .venv >.git/info/exclude
git add --all && git commit --quiet --message 'Of a session'
version=$(node -p 'require("./package.json").version')
mkdir ../elsewhere && cp "$(ls "$CHECKOUT"/test/compatibility/releases/proofgate-*.tgz | tail -n 1)" "../elsewhere/proofgate-$version.tgz"
cd ../elsewhere
# There is no network here: that the lock file suits the package is what npm can tell, and the packages are the checkout's.
npm() { command npm "$@" --dry-run && ln -s "$CHECKOUT/node_modules" node_modules; }
