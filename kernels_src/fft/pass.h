// A pass: tasks from global memory to global memory, by way of UB.
//
// UB holds a task's numbers as they came, then as planes of real and imaginary parts, which stages move to and fro
// between two places, and as they will go. The second place is where results go from. On the host the first stage reads
// global memory itself and the last one writes it, where registers do not reach beyond a task.
#pragma once

#include "fft/stages.h"

// Bytes of a buffer that registers may be loaded from a little beyond what it holds.
__aicore__ inline constexpr uint32_t WithSlack(uint32_t bytes) {
    return (bytes + 31) / 32 * 32 + 2 * VECTOR_REG_WIDTH;
}

template <uint32_t pass>
class Pass {
    using Shape = ::PassShape<pass>;

public:
    // `results`: bytes that a launch writes and nobody reads soon.
    __aicore__ inline Pass(__gm__ Real* x, __gm__ Real* out, GM_ADDR table, const Tiling& tiling, uint64_t results)
        : x_(x),
          out_(out),
          table_(reinterpret_cast<__gm__ Real*>(table) + spec::kTables[pass]),
          scale_(tiling.scale),
          direct_(kFillsRegisters && JITBLAS_DIRECT()),
          past_(direct_ && JITBLAS_PAST_CACHES(out, results)) {
        pipe_.InitBuffer(input_, spec::kBuffers[pass], WithSlack(Shape::kNumbers * kNumberBytes));
        pipe_.InitBuffer(output_, spec::kBuffers[pass], Shape::kTileBytes);
        pipe_.InitBuffer(work_, Shape::kTileBytes);
        pipe_.InitBuffer(tables_, 1, kTableBytes);
        pipe_.InitBuffer(turns_, spec::kBuffers[pass], kTurnBytes);
    }

    static constexpr uint64_t kTasks = spec::kTransform / Shape::kNumbers;  // of a transform

    __aicore__ inline void Run(uint64_t first, uint64_t end) {
        if (first == end) {
            return;
        }
        LocalTensor<Real> table;
        __ubuf__ Real* stages = Fetch(tables_, table, table_, kTableBytes);
        for (uint64_t task = first; task < end; ++task) {
            RunTask(Task(task), Task(task + 1 < end ? task + 1 : task), stages);
        }
        Release(tables_, table);
        if (past_) {
            JITBLAS_PAST_CACHES_END();
        }
    }

private:
    static constexpr uint32_t kNumberBytes = 2 * sizeof(Real);
    static constexpr uint32_t kStages = Shape::kStages;
    static constexpr bool kWhole = Shape::kKind == Kind::kWhole;
    static constexpr bool kRows = Shape::kKind == Kind::kRows;
    static constexpr bool kTurned = Shape::kKind == Kind::kColumns && Shape::kTurnReals != 0;
    static constexpr bool kFillsRegisters = !kWhole || Shape::Right(0) >= kLanes;
    static constexpr uint32_t kTableBytes = WithSlack(Shape::kTableReals * sizeof(Real));
    static constexpr uint32_t kTurnBytes = WithSlack(Shape::kTurnReals * sizeof(Real));

    // What is written for the pass of rows lies in parts of kColumns of its rows' numbers, all rows of a part under
    // each other: (after / columns, points, before, columns). Tasks of either pass then find long runs in memory.
    static constexpr bool kForRows = pass + 2 == spec::kPasses;
    // Runs of a task, in complex numbers: as they come, their number and length, and from one to the next.
    static constexpr uint32_t kInRuns = kWhole ? 1 : kRows ? Shape::kPoints / Shape::kColumns : Shape::kPoints;
    static constexpr uint32_t kInLength = Shape::kNumbers / kInRuns;
    static constexpr uint64_t kInPitch =
        kRows ? static_cast<uint64_t>(Shape::kBefore) * Shape::kColumns : Shape::kAfter;
    // As they go.
    static constexpr uint32_t kOutRuns = kWhole ? 1 : Shape::kPoints;
    static constexpr uint32_t kOutLength = Shape::kNumbers / kOutRuns;
    static constexpr uint64_t kOutPitch =
        static_cast<uint64_t>(Shape::kBefore) * (kForRows ? Shape::kColumns : Shape::kAfter);

    using Queue = TQue<TPosition::VECIN, 1>;

    // Global memory where registers may read and write it.
    __aicore__ static inline __ubuf__ Real* InPlace(__gm__ Real* address) {
        return (__ubuf__ Real*)reinterpret_cast<uint64_t>(address);
    }

    // Reals of global memory, in UB until they are released.
    __aicore__ inline __ubuf__ Real* Fetch(Queue& queue, LocalTensor<Real>& local, __gm__ Real* from, uint32_t bytes) {
        if (JITBLAS_DIRECT()) {
            return InPlace(from);
        }
        GlobalTensor<Real> global;
        global.SetGlobalBuffer(from);
        local = queue.AllocTensor<Real>();
        DataCopyPad(local, global, DataCopyExtParams{1, bytes - 2 * VECTOR_REG_WIDTH, 0, 0, 0},
                    DataCopyPadExtParams<Real>{false, 0, 0, 0});
        queue.EnQue(local);
        local = queue.DeQue<Real>();
        return (__ubuf__ Real*)local.GetPhyAddr();
    }

    __aicore__ inline void Release(Queue& queue, LocalTensor<Real>& local) {
        if (!JITBLAS_DIRECT()) {
            queue.FreeTensor(local);
        }
    }

    // Where a task is: its tables' number, and the complex numbers before its first one.
    struct Task {
        uint64_t turn;
        uint64_t in;
        uint64_t out;

        __aicore__ inline explicit Task(uint64_t number) {
            constexpr uint64_t tasks_across = kWhole ? 1 : (kRows ? Shape::kBefore : Shape::kAfter) / Shape::kColumns;
            constexpr uint64_t tasks_down = kWhole || kRows ? 1 : Shape::kBefore;
            const uint64_t across = number % tasks_across;
            const uint64_t down = number / tasks_across % tasks_down;
            const uint64_t start = number / (tasks_across * tasks_down) * spec::kTransform;
            const uint64_t column = across * Shape::kColumns;
            turn = kRows ? across : down;
            in = start + (kRows ? column * Shape::kColumns : down * Shape::kPoints * Shape::kAfter + column);
            out = start + (kForRows ? (column * Shape::kPoints * Shape::kBefore + down * Shape::kColumns)
                                    : down * Shape::kAfter + column);
        }
    };

    __aicore__ inline void RunTask(const Task& task, const Task& next, __ubuf__ Real* stages) {
        LocalTensor<Real> turn_tensor;
        __ubuf__ Real* turn = stages;
        if constexpr (Shape::kTurnReals != 0) {
            turn = Fetch(turns_, turn_tensor, table_ + Shape::kTableReals + task.turn * Shape::kTurnReals, kTurnBytes);
        }
        LocalTensor<Real> input;
        __ubuf__ Real* from = InPlace(x_ + 2 * task.in);
        int64_t from_pitch = 2 * kInPitch;
        if (!direct_) {
            input = input_.template AllocTensor<Real>();
            GlobalTensor<Real> global;
            global.SetGlobalBuffer(x_ + 2 * task.in);
            DataCopyPad(input, global,
                        DataCopyExtParams{kInRuns, kInLength * kNumberBytes,
                                          static_cast<int64_t>((kInPitch - kInLength) * kNumberBytes), 0, 0},
                        DataCopyPadExtParams<Real>{false, 0, 0, 0});
            input_.EnQue(input);
            input = input_.template DeQue<Real>();
            from = (__ubuf__ Real*)input.GetPhyAddr();
            from_pitch = 2 * kInLength;
        }
        LocalTensor<Real> output = output_.template AllocTensor<Real>();
        Place place{(__ubuf__ Real*)work_.template Get<Real>().GetPhyAddr(), (__ubuf__ Real*)output.GetPhyAddr(),
                    direct_ ? InPlace(out_ + 2 * task.out) : (__ubuf__ Real*)output.GetPhyAddr(),
                    static_cast<int64_t>(2 * (direct_ ? kOutPitch : kOutLength)), InPlace(x_ + 2 * next.in)};
        FirstStep(place, from, from_pitch, stages, turn);
        if (!direct_) {
            input_.FreeTensor(input);
        }
        if constexpr (Shape::kTurnReals != 0) {
            Release(turns_, turn_tensor);
        }
        LaterSteps<1>(place, stages);
        if (!direct_) {
            output_.EnQue(output);
            output = output_.template DeQue<Real>();
            GlobalTensor<Real> global;
            global.SetGlobalBuffer(out_ + 2 * task.out);
            DataCopyPad(global, output,
                        DataCopyExtParams{kOutRuns, kOutLength * kNumberBytes, 0,
                                          static_cast<int64_t>((kOutPitch - kOutLength) * kNumberBytes), 0});
        }
        output_.FreeTensor(output);
    }

    // Steps of a task: its stages, and before those of rows their transposition.
    static constexpr uint32_t kSteps = kStages + (kRows ? 1 : 0);

    struct Place {
        __ubuf__ Real* work;
        __ubuf__ Real* other;  // planes, where the output will be
        __ubuf__ Real* result;
        int64_t result_pitch;
        __ubuf__ Real* next;  // where the next task's numbers come from

        // Of the planes that a step before the last one makes.
        __aicore__ inline __ubuf__ Real* After(uint32_t step) const { return (kSteps - step) % 2 == 0 ? work : other; }
    };

    __aicore__ inline void FirstStep(const Place& place, __ubuf__ Real* from, int64_t pitch, __ubuf__ Real* stages,
                                     __ubuf__ Real* turn) {
        __ubuf__ Real* to = place.After(0);
        if constexpr (kRows) {
            __ubuf__ Real* rows = stages + spec::kRowTable;
            asc_vf_call<TransposeStage<pass>>(to, from, pitch, turn, rows);
        } else if constexpr (kWhole) {
            asc_vf_call<FirstStage<pass>>(to, from, stages + Shape::Table(0));
        } else {
            asc_vf_call<ColumnsFirstStage<pass, kTurned>>(to, from, pitch, stages + Shape::Table(0), turn);
        }
    }

    template <uint32_t step>
    __aicore__ inline void LaterSteps(const Place& place, __ubuf__ Real* stages) {
        constexpr uint32_t stage = kRows ? step - 1 : step;
        __ubuf__ Real* from = place.After(step - 1);
        if constexpr (stage + 1 == kStages) {
            asc_vf_call<LastStage<pass, stage, kRows ? Shape::kColumns : 1>>(
                place.result, place.result_pitch, from, scale_, past_, place.next, static_cast<int64_t>(2 * kInPitch));
        } else {
            if constexpr (Shape::Done(stage) < kLanes) {
                asc_vf_call<BlockStage<pass, stage>>(place.After(step), from, stages + Shape::Table(stage));
            } else {
                asc_vf_call<MiddleStage<pass, stage>>(place.After(step), from, stages + Shape::Table(stage));
            }
            LaterSteps<step + 1>(place, stages);
        }
    }

    TPipe pipe_;
    Queue input_;
    Queue tables_;
    Queue turns_;
    TQue<TPosition::VECOUT, 1> output_;
    TBuf<TPosition::VECCALC> work_;
    __gm__ Real* x_;
    __gm__ Real* out_;
    __gm__ Real* table_;
    Real scale_;
    bool direct_;
    bool past_;
};
