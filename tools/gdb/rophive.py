# SPDX-License-Identifier: MIT
"""Fibers in gdb, of a live process or of a core file:

    (gdb) source rophive.py
    (gdb) hive fibers            all fibers of all hives: address, name, what they do and wait for, worker
    (gdb) hive ops               operations under way, by worker: address, what, descriptor, until when, who is told
    (gdb) hive bt FIBER          backtrace of one: its address, its handle, or its name
    (gdb) hive enter FIBER       from here on bt, up, frame N, info locals are about that fiber; frame 0 is of the thread
    (gdb) hive leave             back to the thread
    (gdb) hive gcore FILE        as gcore, with the stacks of fibers: gdb's own leaves out what lies behind a guard on Linux 6.13 and
                                 later (core files that the kernel writes have them)

Reads the library's own structs, so the library needs its debug information; the program that uses it need not have any, but then
its functions are shown without lines and arguments. Nothing is written to the process."""
import re
import struct

import gdb
import gdb.unwinder

PHASES = ("ready", "about to wait", "waits", "woken", "woken by its deadline", "woken by a cancel")
AWAKE = 0
GUESTS_IO = 1  # src/sched/guest.h
ADDRESS_BITS = 48  # above them a handle has its generation (src/fiber/fiber.h)

# x86-64: where a saved frame has pc and frame pointer, and its size, when the switch is inline (src/fiber/switch_x86_64.h)
INLINE_PC, INLINE_FP, INLINE_FRAME = 8, 16, 152
# Indices in the general registers of glibc's ucontext_t.
UCONTEXT_RBP, UCONTEXT_RSP, UCONTEXT_RIP = 10, 15, 16


def evaluate(expression):
    """In C, whatever the language of the selected frame."""
    language = gdb.parameter("language")
    gdb.execute("set language c", to_string=True)
    try:
        return int(gdb.parse_and_eval(expression))
    finally:
        gdb.execute("set language " + language, to_string=True)


def is_pointer_to(kind, name):
    kind = kind.unqualified()
    return kind.code == gdb.TYPE_CODE_PTR and kind.target().unqualified().tag == name


class Library:
    """Types and constants as the library's own files see them; a program may have other structs of these names."""

    def __init__(self):
        self.lists = [
            symbol.value()
            for symbol in gdb.lookup_static_symbols("all")
            if symbol.symtab.filename.endswith("sched/dump.c") and is_pointer_to(symbol.type, "hive")
        ]
        function = gdb.lookup_global_symbol("hive__stacks_visit") or gdb.lookup_static_symbol("hive__stacks_visit")
        fibers = gdb.lookup_global_symbol("hive__fibers_dump") or gdb.lookup_static_symbol("hive__fibers_dump")
        if not self.lists or not function or not fibers:
            raise gdb.GdbError("hive: librophive is not loaded, or has no debug information of its structs (build it with -g)")
        self._stacks = function.symtab.static_block()
        self._fibers = fibers.symtab.static_block()
        self.fibers = gdb.lookup_type("struct fibers", self._fibers).pointer()
        self.fiber = gdb.lookup_type("struct hive_fiber", self._fibers).pointer()
        self.stacks = gdb.lookup_type("struct stacks", self._stacks).pointer()
        self.shift_first = self.constant("STACK_SHIFT_FIRST", 14)

    def desk(self):
        start = gdb.lookup_global_symbol("hive__op_begin") or gdb.lookup_static_symbol("hive__op_begin")
        return gdb.lookup_type("struct desk", start.symtab.static_block()).pointer()

    def constant(self, name, otherwise):
        symbol = gdb.lookup_symbol(name, self._stacks)[0]
        return int(symbol.value()) if symbol else otherwise


def hives(library):
    for first in library.lists:
        hive = first
        while int(hive):
            yield hive
            hive = hive["next_of_all"]


def workers(hive):
    for kind in ("io", "compute"):
        for i in range(int(hive[kind]["limit"])):
            yield hive[kind]["slots"][i]


def text(chars):
    return chars.string("utf-8", "replace")


class Fiber:
    def __init__(self, at, hive):
        self.at = at
        self.address = int(at)
        self.name = text(at["name"])
        self.phase = int(at["waiter"]["cell"]["word"]) & 7
        self.began = int(at["began"])
        self.worker = None
        for worker in workers(hive):
            if int(worker["place"]["now"]) == self.address:
                self.worker = text(worker["name"])

    def doing(self):
        why = self.at["waiter"]["why"]
        if self.began == 0:
            return "not begun"
        if self.worker is not None:
            return "runs on " + self.worker
        words = PHASES[self.phase] if self.phase < len(PHASES) else "?"
        if self.phase == AWAKE or not int(why):
            return words
        reason = why.string()
        return words + ": " + reason + (str(int(self.at["waiter"]["detail"])) if reason.endswith(" ") else "")

    def fn(self):
        symbol = re.search(r"<(.*)>", str(self.at["fn"]))
        return symbol.group(1) if symbol else "0x%x" % int(self.at["fn"])

    def owns(self, address):
        """The guard below the stack counts: who ran into it is there. Stack and guard make a power of two."""
        size = int(self.at["stack"]["bytes"])
        top = int(self.at["stack"]["low"]) + size
        return top - (1 << (size - 1).bit_length()) <= address < top


def fiber_below(top):
    """As fiber_of_stack() does."""
    colour = (top * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 60
    return top - 512 - colour * 64


def fibers_of(library, hive):
    """As hive__stacks_visit() does: each slot of each region may have a fiber at its top."""
    if not int(hive["guests"][0]):
        return
    classes = hive["guests"][0].cast(library.fibers)["stacks"].cast(library.stacks)["classes"]
    for i in range(classes.type.range()[1] + 1):
        slot = 1 << (library.shift_first + i)
        region = classes[i]["regions"]
        while int(region):
            for n in range(1, int(region["used"]) + 1):
                at = gdb.Value(fiber_below(int(region["base"]) + n * slot)).cast(library.fiber)
                if int(at["fate"]) >> 32 != 0 and int(at["began"]) != 2:
                    yield Fiber(at, hive)
            region = region["next"]


def op_name(op):
    """As the starter is called."""
    for field in gdb.lookup_type("enum hive_op_code").fields():
        if field.enumval == int(op["code"]):
            return field.name.replace("HIVE_OP_", "").lower()
    return "?"


def listener(op):
    if not int(op["on_done"]):
        return "awaited"
    symbol = re.search(r"<(.*)>", str(op["on_done"]))
    return "tells %s()" % symbol.group(1) if symbol else "tells 0x%x" % int(op["on_done"])


def find(library, words):
    """The fiber meant by a name, an address or a handle."""
    all_fibers = [fiber for hive in hives(library) for fiber in fibers_of(library, hive)]
    found = [fiber for fiber in all_fibers if fiber.name == words]
    if not found:
        try:
            address = evaluate(words) & ((1 << ADDRESS_BITS) - 1)
        except gdb.error:
            address = None
        found = [fiber for fiber in all_fibers if fiber.address == address]
    if not found:
        raise gdb.GdbError("hive: no fiber %s; see: hive fibers" % words)
    if len(found) > 1:
        raise gdb.GdbError("hive: %d fibers are called %s; name one by its address" % (len(found), words))
    return found[0]


def number():
    return gdb.lookup_type("unsigned long")


def thread_of(fiber):
    """The thread that is on this fiber's stack now, or None. The selected thread stays selected."""
    before, found = gdb.selected_thread(), None
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        if fiber.owns(int(gdb.newest_frame().read_register("sp").cast(number()))):
            found = thread
            break
    if before:
        before.switch()
    return found


def word(address):
    return int(gdb.Value(address).cast(number().pointer()).dereference())


def address_of(name):
    """Of a function without debug information; None: there is none of this name."""
    try:
        return evaluate("(unsigned long)&" + name)
    except gdb.error:
        return None


def saved_registers(fiber):
    """Of a fiber that does not run, as if a function had been called there; the unwind information does the rest."""
    if fiber.worker is not None:
        raise gdb.GdbError("hive: it runs, but no thread is on its stack; in a signal handler? See: thread apply all bt")
    sp = int(fiber.at["context"]["sp"])
    machine = gdb.selected_frame().architecture().name()
    resume = address_of("hive__context_resume")
    if resume is not None:  # a routine, and its frame lies at sp
        return {"pc": resume, "sp": sp}
    if not machine.startswith("i386:x86-64"):
        raise gdb.GdbError("hive: cannot look into fibers on " + machine)
    if address_of("hive__context_entry") is None:  # the ucontext switch: sp is that of a ucontext_t
        registers = gdb.Value(sp).cast(gdb.lookup_type("ucontext_t").pointer())["uc_mcontext"]["gregs"]
        rip, rsp, rbp = (int(registers[i]) for i in (UCONTEXT_RIP, UCONTEXT_RSP, UCONTEXT_RBP))
        return {"pc": rip, "sp": rsp, "rbp": rbp}
    return {"pc": word(sp + INLINE_PC), "sp": sp + INLINE_FRAME, "rbp": word(sp + INLINE_FP)}


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Bridge(gdb.unwinder.Unwinder):
    """Tells gdb that the caller of the thread's innermost frame is the fiber. So nothing has to be written, and cores work."""

    def __init__(self):
        super().__init__("rophive fiber")
        self.registers = None

    def lead_to(self, registers):
        self.registers = registers
        gdb.invalidate_cached_frames()

    def __call__(self, frame):
        if self.registers is None or frame.level() != 0:
            return None
        pointer = gdb.lookup_type("void").pointer()
        # Below all frames of the fiber: gdb wants callers to lie higher.
        info = frame.create_unwind_info(FrameId(gdb.Value(self.registers["sp"] - 8).cast(pointer), frame.read_register("pc")))
        for name, value in self.registers.items():
            info.add_saved_register(name, gdb.Value(value).cast(number()))
        return info


bridge = Bridge()
gdb.unwinder.register_unwinder(None, bridge, replace=True)


class HiveCommand(gdb.Command):
    """Fibers of rophive: hive fibers, hive ops, hive bt FIBER, hive enter FIBER, hive leave, hive gcore FILE."""

    def __init__(self):
        super().__init__("hive", gdb.COMMAND_STACK, prefix=True)


class FibersCommand(gdb.Command):
    """All fibers of all hives: address, name, what they do and wait for, their function."""

    def __init__(self):
        super().__init__("hive fibers", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        library, count = Library(), 0
        for hive in hives(library):
            print("hive 0x%x" % int(hive))
            for fiber in fibers_of(library, hive):
                print("  0x%x  %-16s %-40s %s()" % (fiber.address, fiber.name or "-", fiber.doing(), fiber.fn()))
                count += 1
        print("%d fibers" % count)


class OpsCommand(gdb.Command):
    """Operations under way, by worker. Those on their way from one thread to another are at none."""

    def __init__(self):
        super().__init__("hive ops", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        library, count = Library(), 0
        for hive in hives(library):
            for worker in workers(hive):
                desk = worker["place"]["cache"][GUESTS_IO]
                op = desk.cast(library.desk())["ops"] if int(desk) else None
                while op is not None and int(op):
                    print("  0x%x  %-10s %-10s fd %-4d %s" % (int(op), text(worker["name"]), op_name(op), int(op["fd"]), listener(op)))
                    count += 1
                    op = op["next"].cast(op.type)
        print("%d operations" % count)


class BtCommand(gdb.Command):
    """Backtrace of a fiber, given by its address, handle or name."""

    def __init__(self):
        super().__init__("hive bt", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        fiber = find(Library(), arguments.strip())
        thread = thread_of(fiber)
        print("fiber 0x%x %s: %s" % (fiber.address, fiber.name, fiber.doing()))
        if fiber.began == 0:
            return
        if thread:  # it runs: the thread's own backtrace is the fiber's
            before = gdb.selected_thread()
            thread.switch()
            try:
                print(gdb.execute("backtrace", to_string=True), end="")
            finally:
                before.switch()
            return
        kept = bridge.registers
        bridge.lead_to(saved_registers(fiber))
        try:
            self.show_without_first(gdb.execute("backtrace", to_string=True))
        finally:
            bridge.lead_to(kept)

    @staticmethod
    def show_without_first(lines):
        """Frame 0 is that of the thread; the others are numbered as in "hive enter"."""
        own = False
        for line in lines.splitlines():
            if line.startswith("#"):
                own = not line.startswith("#0 ")
            if own:
                print(line)


class EnterCommand(gdb.Command):
    """Makes bt, up, frame N and info locals look at a fiber that does not run. Frame 0 stays the thread's. "hive leave" ends it."""

    def __init__(self):
        super().__init__("hive enter", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        fiber = find(Library(), arguments.strip())
        thread = thread_of(fiber)
        if fiber.began == 0:
            raise gdb.GdbError("hive: it has not begun")
        if thread:
            bridge.lead_to(None)
            thread.switch()
            print("it runs: this is now thread %d" % thread.num)
            return
        bridge.lead_to(saved_registers(fiber))
        gdb.execute("frame 1")


class LeaveCommand(gdb.Command):
    """Ends "hive enter"."""

    def __init__(self):
        super().__init__("hive leave", gdb.COMMAND_STACK)

    def invoke(self, arguments, from_tty):
        bridge.lead_to(None)


class Core:
    """A core file that gdb wrote, to be completed."""

    def __init__(self, file):
        self.file = file
        header = file.read(64)
        table, size, count = struct.unpack_from("<Q14xHH", header, 32)
        self.segments = []
        for i in range(count):
            file.seek(table + i * size)
            kind, offset, address, length = struct.unpack("<I4xQQ8xQ", file.read(40))
            if kind == 1:  # PT_LOAD
                self.segments.append((address, length, offset))

    def put(self, address, memory):
        for start, length, offset in self.segments:
            if start <= address and address + len(memory) <= start + length:
                self.file.seek(offset + address - start)
                self.file.write(memory)
                return True
        return False


class GcoreCommand(gdb.Command):
    """A core file of the process, with the stacks of all fibers."""

    def __init__(self):
        super().__init__("hive gcore", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, arguments, from_tty):
        library, count = Library(), 0
        gdb.execute("gcore " + arguments, to_string=True)
        with open(arguments.strip(), "r+b") as file:
            core = Core(file)
            for hive in hives(library):
                for fiber in fibers_of(library, hive):
                    count += self.put_stack(core, fiber)
        print("%s: with the stacks of %d fibers" % (arguments.strip(), count))

    @staticmethod
    def put_stack(core, fiber):
        """All of a stack that runs; of another one what is in use."""
        low = int(fiber.at["stack"]["low"])
        top = low + int(fiber.at["stack"]["bytes"])
        saved = int(fiber.at["context"]["sp"])
        if fiber.began != 0 and fiber.worker is None and fiber.owns(saved):
            low = max(low, saved - 256)
        elif fiber.began == 0:
            low = fiber.address
        return core.put(low, gdb.selected_inferior().read_memory(low, top - low).tobytes())


def forget(event):
    """What was saved is not true any more once the process goes on."""
    bridge.lead_to(None)


gdb.events.cont.connect(forget)
for command in (HiveCommand, FibersCommand, OpsCommand, BtCommand, EnterCommand, LeaveCommand, GcoreCommand):
    command()
