"""Types a line into an interactive shell: press-tab.py SHELL SETUP LINE, where \\t in LINE is the Tab key.

SETUP is run first. Ends when the shell has ended, which LINE must bring about; writes what the terminal showed.
"""
import os
import pty
import select
import sys
import time

PROMPT = b"READY> "
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
PROMPTS = {
    "bash": "PS1='READY''> '",
    "zsh": "PROMPT='READY''> '; unsetopt PROMPT_SP ZLE_RPROMPT_INDENT 2>/dev/null; autoload -Uz compinit; compinit -D -u",
    "fish": "function fish_prompt; printf 'READY''> '; end",
}
GIVE_UP_SECONDS = 60


def main() -> None:
    shell, setup, line = sys.argv[1:4]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(SHELLS[shell][0], SHELLS[shell])
    shown = b""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    # Each is typed when the prompt is there once more.
    pending = [f"{PROMPTS[shell]}\r", f"{setup}\r", line.replace("\\t", "\t") + "\r"]
    prompts = 0
    os.write(terminal, pending.pop(0).encode())
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            read = os.read(terminal, 65536)
        except OSError:
            break
        if not read:
            break
        shown += read
        # A terminal that fish asks what it is.
        if b"\x1b[c" in read or b"\x1b[0c" in read:
            os.write(terminal, b"\x1b[?62;c")
        if pending and shown.count(PROMPT) > prompts:
            prompts = shown.count(PROMPT)
            os.write(terminal, pending.pop(0).encode())
    sys.stdout.buffer.write(shown)
    os.waitpid(pid, 0)


main()
