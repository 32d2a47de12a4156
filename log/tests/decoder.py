#!/usr/bin/env python3
"""A second decoder of segment files, written from docs/format.md alone: `decoder.py FILE...` lists every stretch of each."""
import os
import struct
import sys
import zlib

HEADER, MAGIC, MASK = 84, b"TNF1", 0xFFFFFFFF
IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
MIXES = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def compress(cv, words, counter, length, flags):
    s = list(cv) + IV[:4] + [counter & MASK, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(MIXES):
            for word, first, second in ((words[2 * i], 16, 12), (words[2 * i + 1], 8, 7)):
                s[a] = (s[a] + s[b] + word) & MASK
                x = s[d] ^ s[a]
                s[d] = (x >> first | x << (32 - first)) & MASK
                s[c] = (s[c] + s[d]) & MASK
                x = s[b] ^ s[c]
                s[b] = (x >> second | x << (32 - second)) & MASK
        words = [words[i] for i in ORDER]
    return [s[i] ^ s[i + 8] for i in range(8)]


def chunk_node(data, number):
    """The arguments of a chunk's last compression."""
    blocks = [data[i:i + 64] for i in range(0, len(data), 64)] or [b""]
    cv = IV
    for i, block in enumerate(blocks):
        flags = (1 if i == 0 else 0) | (2 if i == len(blocks) - 1 else 0)
        node = (cv, list(struct.unpack("<16I", block.ljust(64, b"\0"))), number, len(block), flags)
        if i < len(blocks) - 1:
            cv = compress(*node)
    return node


def tree_node(data, number):
    if len(data) <= 1024:
        return chunk_node(data, number)
    left = 1024
    while left * 2 < len(data):
        left *= 2
    children = compress(*tree_node(data[:left], number)) + compress(*tree_node(data[left:], number + left // 1024))
    return (IV, children, 0, 64, 4)


def blake3_16(data):
    cv, words, counter, length, flags = tree_node(data, 0)
    return struct.pack("<8I", *compress(cv, words, counter, length, flags | 8))[:16]


def segment_header(data):
    """The header's fields, or the code of what is wrong."""
    if len(data) < 4096:
        return None, "short"
    if data[:8] != b"tenurSEG":
        return None, "segment-magic"
    if zlib.crc32(data[:4092]) != struct.unpack_from("<I", data, 4092)[0]:
        return None, "segment-crc"
    version, writer, rules, flags = struct.unpack_from("<IIII", data, 8)
    if version > 1:
        return None, "newer-format"
    store, salt, incarnation, epoch, first, chain = struct.unpack_from("<16s16sQQQ16s", data, 24)
    p_first, p_epoch, p_end, p_position, p_chain = struct.unpack_from("<QQQQ16s", data, 96)
    good = version == 1 and flags < 2 and not any(data[144 if flags else 96:4092])
    good = good and incarnation > 0 and 0 < epoch < 1 << 32 and 0 < first < 1 << 48 and (flags or first == 1)
    if good and flags:
        good = 0 < p_first <= first and p_first < 1 << 48 and 0 < p_epoch and (p_epoch, p_first) < (epoch, first)
        good = good and p_end >= 4096 and p_end % 8 == 0 and p_position == first - 1 and p_chain == chain
        good = good and (p_position < p_first) == (p_end == 4096)
    if not good:
        return None, "segment-field"
    before = "none" if not flags else f"{p_first:020}-{p_epoch}.seg end={p_end}"
    line = (f"header writer={writer} rules={rules} store={store.hex()} salt={salt.hex()} incarnation={incarnation} "
            f"epoch={epoch} first={first} chain={chain.hex()} predecessor={before}")
    return dict(salt=salt, incarnation=incarnation, epoch=epoch, first=first, chain=chain, line=line), None


def frame_header(data, at, segment):
    """The frame header at an offset, or the code of what is wrong."""
    h = data[at:at + HEADER]
    if not any(h):
        return None, "zeros"
    if len(h) < HEADER:
        return None, "short"
    if h[:4] != MAGIC:
        return None, "magic"
    seed = segment["salt"] + struct.pack("<QQQ", segment["first"], segment["epoch"], at)
    names = ("facts", "texts", "bodies", "position", "incarnation", "epoch", "time", "durable", "chain", "facts_crc", "rest_crc", "crc")
    f = dict(zip(names, struct.unpack_from("<IIIQQQqQ16sIII", h, 4)), chained=h[:56])
    if zlib.crc32(seed + h[:80]) != f["crc"]:
        return None, "header-crc"
    f["bytes"] = (HEADER + f["facts"] + f["texts"] + f["bodies"] + 7) // 8 * 8
    if f["facts"] > 1 << 20 or f["texts"] > 4 << 20 or f["bodies"] > 32 << 20:
        return None, "too-long"
    if not 0 < f["position"] < 1 << 48:
        return None, "position"
    if f["durable"] >= f["position"]:
        return None, "durable"
    if not 0 < f["epoch"] <= segment["epoch"]:
        return None, "epoch"
    return f, None


def judge_frame(data, at, f, segment, before, linked):
    """The code of what is wrong with a frame whose header is good in itself."""
    if at + f["bytes"] > len(data):
        return "short"
    facts_end = at + HEADER + f["facts"]
    rest_end = facts_end + f["texts"] + f["bodies"]
    if zlib.crc32(data[at + HEADER:facts_end]) != f["facts_crc"]:
        return "facts-crc"
    if any(data[rest_end:at + f["bytes"]]):
        return "padding"
    if zlib.crc32(data[facts_end:rest_end]) != f["rest_crc"]:
        return "rest-crc"
    if linked and f["position"] != before["position"] + 1:
        return "position"
    if linked and f["epoch"] < before["epoch"]:
        return "epoch"
    if not (before["incarnation"] if linked else 1) <= f["incarnation"] <= segment["incarnation"]:
        return "incarnation"
    if linked and blake3_16(before["chain"] + f["chained"] + data[at + HEADER:facts_end]) != f["chain"]:
        return "chain"
    return None


def bad_end(data, at, segment):
    """Where bytes without a good header end: at the next good header, or behind the last byte that is not zero."""
    for next_at in range(at + 8, len(data), 8):
        if data[next_at:next_at + 4] == MAGIC and frame_header(data, next_at, segment)[0]:
            return next_at
    behind = max(len(data.rstrip(b"\0")), at + 1)
    return min((behind + 7) // 8 * 8, len(data))


def listing(name, data):
    yield f"segment {name} {len(data)}"
    segment, fault = segment_header(data)
    if fault:
        yield f"header {fault}"
        if len(data) > 4096:
            yield f"bad 4096 {len(data) - 4096} {fault}"
        return
    yield segment["line"]
    at, linked = 4096, True
    before = dict(position=segment["first"] - 1, chain=segment["chain"], epoch=0, incarnation=1)
    while at < len(data):
        f, fault = frame_header(data, at, segment)
        if fault == "zeros":
            end = next((i for i in range(at, len(data)) if data[i]), None)
            end, kind = (len(data) if end is None else end // 8 * 8), "zeros"
        elif fault:
            end, kind = bad_end(data, at, segment), f"bad {fault}"
        else:
            fault = judge_frame(data, at, f, segment, before, linked)
            end = bad_end(data, at, segment) if fault == "short" else at + f["bytes"]
            kind = f"bad {fault} position={f['position']}"
        if fault:
            words = kind.split()
            yield " ".join([words[0], str(at), str(end - at)] + words[1:])
            linked = False
        else:
            yield (f"frame {at} {f['bytes']} {'follows' if linked else 'detached'} position={f['position']} "
                   f"incarnation={f['incarnation']} epoch={f['epoch']} time={f['time']} durable={f['durable']} "
                   f"facts={f['facts']} texts={f['texts']} bodies={f['bodies']} chain={f['chain'].hex()}")
            before, linked = f, True
        at = end


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            print("\n".join(listing(os.path.basename(path), file.read())))
