# Catch-up with a backlog ten times as large, divided by that with the small one. Target: at least 0.95, and the memory of
# sender and receiver flat.

# memory PORT DATABASE PATTERN: MB of its own that a worker holds.
memory() {
	local pid
	pid=$(sql "$1" "$2" -c "SELECT pid FROM pg_stat_activity WHERE datname = '$2' AND backend_type ~ '$3' LIMIT 1")
	awk '/^RssAnon/ { printf "%.1f", $2 / 1024 }' "/proc/$pid/status"
}

measure() {
	local r size first=0
	local -A rate
	begin_peer onerepl
	peer_setup
	link_start
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		for size in 1 10; do
			a -c 'TRUNCATE t'
			mark && await_mark
			a -c 'VACUUM' && b -c 'VACUUM'
			link_stop
			first=$((first + 10000000))
			insert_backlog $first $((backlog_tx * size))
			timed_catch_up
			rate[$size]=$(calc "$backlog_tx * 1000 * $size / $elapsed")
			result "growth_x$size" "$r" "${rate[$size]}" changes/s
			result "sender_memory_x$size" "$r" "$(memory "$port_a" bench sender)" MB
			result "receiver_memory_x$size" "$r" "$(memory "$port_b" bench receiver)" MB
		done
		result growth_ratio "$r" "$(calc "${rate[10]} / ${rate[1]}")" x
	done
}
