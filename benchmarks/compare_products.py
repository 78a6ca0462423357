"""Generated products next to torch's, taking turns in one process group so that both meet the same noise.

    .venv/bin/python benchmarks/compare_products.py build/bin/products-benchmark [--rounds 10] [--threads 1 2]

GFLOP/s count useful operations: 2mnk for a product, all of a plain Newton–Schulz step's for `newton`
(so that symmetry shows as speed); the fastest of all rounds counts.
"""
import argparse
import subprocess
import time

import torch


def torch_product(m, n, k, transposed):
    a, c = torch.randn(m, k), torch.empty(m, n)
    b = torch.randn(n, k).t() if transposed else torch.randn(k, n)
    return lambda: torch.mm(a, b, out=c)


def torch_newton(rows, cols, steps):
    x0 = torch.randn(rows, cols) * 0.01

    def run():  # torch.optim.Muon's sequence
        x = x0
        for _ in range(steps):
            gram = x @ x.T
            poly = torch.addmm(gram, gram, gram, beta=-4.775, alpha=2.0315)
            x = torch.addmm(x, poly, x, beta=3.4445)

    return run


def fastest(threads, run):
    clock = time.thread_time if threads == 1 else time.perf_counter  # as products.cpp
    best, total, count = 1e9, 0.0, 0
    while count < 3 or (total < 0.05 and count < 50):
        start = clock()
        run()
        seconds = clock() - start
        best, total, count = min(best, seconds), total + seconds, count + 1
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--bits", type=int, nargs="*", default=[512])
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    server = subprocess.Popen([arguments.benchmark], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ours(request):
        server.stdin.write(request + "\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    cases = []
    for r in (512, 1024, 2048):
        cases.append((f"product {r} {r} {r}", "", 2 * r**3, lambda r=r: torch_product(r, r, r, False)))
        cases.append(
            (f"product {r} {r} {r}", " nt symmetric", 2 * r**3, lambda r=r: torch_product(r, r, r, True))
        )
    for r in (512, 1024):
        cases.append((f"product {r} {r} {4 * r}", " nt symmetric", 8 * r**3,
                      lambda r=r: torch_product(r, r, 4 * r, True)))
        cases.append(
            (f"product {r} {4 * r} {r}", "", 8 * r**3, lambda r=r: torch_product(r, 4 * r, r, False))
        )
    for rows, cols in ((256, 256), (512, 512), (1024, 1024), (2048, 2048), (256, 1024), (512, 2048), (1024, 4096)):
        cases.append((f"newton {rows} {cols} 5", "", 5 * (4 * rows * rows * cols + 2 * rows**3),
                      lambda rows=rows, cols=cols: torch_newton(rows, cols, 5)))
    print(f"{'':44} {'stepc':>8} {'torch':>8} {'ratio':>6}")
    for bits in arguments.bits:
        for threads in arguments.threads:
            torch.set_num_threads(threads)
            for name, flags, operations, make in cases:
                if arguments.only not in name + flags:
                    continue
                theirs, request = make(), f"{name} {threads} {bits}{flags}"
                mine, other = 1e9, 1e9
                for _ in range(arguments.rounds):
                    mine = min(mine, ours(request))
                    other = min(other, fastest(threads, theirs))
                    time.sleep(0.02)  # torch's threads spin for a while after their last work
                print(f"{request:44} {operations / mine / 1e9:8.1f} {operations / other / 1e9:8.1f} "
                      f"{other / mine:6.2f}", flush=True)
    server.stdin.close()


if __name__ == "__main__":
    main()
