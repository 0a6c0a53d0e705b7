// Ranges and sets of them, against a set of single numbers.
#include "core/ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace onerepl {
namespace {

TEST(Range, EmptySizeContains) {
    EXPECT_TRUE(Range{}.empty());
    EXPECT_EQ(Range{}.size(), 0u);
    EXPECT_FALSE(Range{}.contains(0));
    EXPECT_FALSE(Range{}.contains(1));
    EXPECT_EQ((Range{3, 5}.size()), 3u);
    EXPECT_TRUE((Range{3, 5}.contains(3)));
    EXPECT_TRUE((Range{3, 5}.contains(5)));
    EXPECT_FALSE((Range{3, 5}.contains(6)));
}

TEST(Range, Intersection) {
    EXPECT_EQ(intersection({3, 8}, {5, 12}), (Range{5, 8}));
    EXPECT_EQ(intersection({3, 8}, {8, 8}), (Range{8, 8}));
    EXPECT_TRUE(intersection({3, 8}, {9, 12}).empty());
    EXPECT_TRUE(intersection({3, 8}, {}).empty());
}

TEST(Range, Text) {
    EXPECT_EQ(to_string(Range{17, 17}), "17");
    EXPECT_EQ(to_string(Range{17, 23}), "17..23");
    EXPECT_EQ(to_string(Range{}), "none");
}

/// The same operations on a RangeSet and on a plain set of numbers.
class Pair {
  public:
    static constexpr Number top = 60;

    void add(Range range) {
        for (Number n = range.first; n <= range.last; ++n) plain_.insert(n);
        set_.add(range);
    }
    void remove(Range range) {
        for (Number n = range.first; n <= range.last; ++n) plain_.erase(n);
        set_.remove(range);
    }

    void check() const {
        check_shape();
        EXPECT_EQ(set_.empty(), plain_.empty());
        EXPECT_EQ(set_.size(), plain_.size());
        if (!plain_.empty()) {
            EXPECT_EQ(set_.first(), *plain_.begin());
        }
        if (!plain_.empty()) {
            EXPECT_EQ(set_.last(), *plain_.rbegin());
        }
        for (Number n = 1; n <= top + 2; ++n) check_number(n);
        EXPECT_EQ(RangeSet(set_.ranges()), set_);
    }
    void check_missing(Range range) const {
        std::set<Number> gaps;
        Number previous_last = 0;
        for (Range gap : set_.missing(range)) {
            EXPECT_FALSE(gap.empty());
            EXPECT_GT(gap.first, previous_last + (previous_last > 0 ? 1 : 0));
            previous_last = gap.last;
            for (Number n = gap.first; n <= gap.last; ++n) gaps.insert(n);
        }
        for (Number n = 1; n <= top + 2; ++n)
            EXPECT_EQ(gaps.contains(n), range.contains(n) && !plain_.contains(n)) << n;
    }

  private:
    void check_shape() const {
        std::optional<Range> previous;
        for (Range range : set_.ranges()) {
            EXPECT_FALSE(range.empty());
            if (previous) {
                EXPECT_GT(range.first, previous->last + 1) << "ranges overlap or touch";
            }
            previous = range;
        }
    }
    void check_number(Number n) const {
        EXPECT_EQ(set_.contains(n), plain_.contains(n)) << n;
        Number reached = n - 1;
        while (plain_.contains(reached + 1)) ++reached;
        EXPECT_EQ(set_.contiguous_to(n), reached) << n;
    }

    RangeSet set_;
    std::set<Number> plain_;
};

Range random_range(std::mt19937& random) {
    const Number first = std::uniform_int_distribution<Number>(1, Pair::top)(random);
    // One in a few is empty.
    const Number last = first + std::uniform_int_distribution<Number>(0, 12)(random) - 1;
    return {first, std::min(last, Pair::top)};
}

TEST(RangeSet, BehavesAsASetOfNumbers) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        Pair pair;
        for (int step = 0; step < 40; ++step) {
            if (std::bernoulli_distribution(0.6)(random))
                pair.add(random_range(random));
            else
                pair.remove(random_range(random));
            pair.check();
            pair.check_missing(random_range(random));
        }
        if (HasFailure()) return;
    }
}

TEST(RangeSet, WorksAtTheEndsOfTheNumbers) {
    constexpr Number largest = UINT64_MAX;
    RangeSet set;
    set.add({largest, largest});
    set.add({largest - 5, largest - 1});
    set.add({0, 3});
    EXPECT_EQ(set.ranges(), (std::vector<Range>{{0, 3}, {largest - 5, largest}}));
    EXPECT_EQ(set.contiguous_to(largest - 2), largest);
    EXPECT_EQ(set.missing({0, largest}), (std::vector<Range>{{4, largest - 6}}));
    set.remove({largest, largest});
    set.remove({0, 0});
    EXPECT_EQ(set.ranges(), (std::vector<Range>{{1, 3}, {largest - 5, largest - 1}}));
    set.remove({0, largest});
    EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace onerepl
